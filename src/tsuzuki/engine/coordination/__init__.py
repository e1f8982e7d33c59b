"""Coordination outside the database (Redis): heartbeats, short leases and wake-ups, faster than polling."""
