"""Read jobs and runs with the database's driver alone. Importing SQLAlchemy takes longer than a whole listing.

A short way for reading commands, and nothing more: what it cannot answer is `CannotRead`, and the caller
goes the ordinary way, which answers or says what is wrong.
"""
