"""`tsuzuki user` and `tsuzuki token`: who may do what."""
