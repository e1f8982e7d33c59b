"""Log archive and retention: the archivist moves old logs out of the database, and deletes old runs."""
