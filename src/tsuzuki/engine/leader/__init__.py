"""Leading: one process at a time plans, takes in events, assigns and rescues; the others wait for its lease to end."""
