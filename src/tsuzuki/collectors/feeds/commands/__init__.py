"""`tsuzuki feeds`."""
