"""Coordination outside the database (Redis): heartbeats, short reservations and wake-ups, faster than polling."""
