"""Books: collect a search page by page, across days, quotas and crashes, and email each new book once."""
