"""`tsuzuki commits`."""
