"""Old logs out of the database: who moves them, where to, and in which format."""
