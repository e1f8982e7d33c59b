"""`tsuzuki books`."""
