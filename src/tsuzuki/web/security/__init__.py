"""Who may send a request and what a request may look like: checked before anything else reads it."""
