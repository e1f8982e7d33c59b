"""`tsuzuki user` and `tsuzuki token`: users, roles and tokens."""
