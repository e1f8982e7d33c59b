"""Leading: one process at a time plans, processes events, assigns and rescues; others wait for its lease to end."""
