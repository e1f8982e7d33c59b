"""Wake-ups of a process's loops. Hints only: every loop polls as well."""
