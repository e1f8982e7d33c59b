"""Runs in the database: creating and reading them, every move, and the questions leader and worker ask."""
