"""The proof of the store: every rule on SQLite and on PostgreSQL."""
