"""Runs in the database: creating and reading them, every move, and the queries of leader and worker."""
