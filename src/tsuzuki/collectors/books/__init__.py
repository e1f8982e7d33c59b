"""Books: a search collected page after page, across days, quotas and crashes; and mailed, once."""
