"""`tsuzuki index`."""
