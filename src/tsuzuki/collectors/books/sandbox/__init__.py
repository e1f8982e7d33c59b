"""Stand-ins for Google Books and for a mail server."""
