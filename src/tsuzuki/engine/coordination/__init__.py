"""Help from outside the database (Redis): heartbeats, short leases and wake-ups, faster than a poll."""
