"""Time limits for read requests of interfaces."""

from tsuzuki.store.sql.read_limit import limited_reads

__all__ = ["CHECK_SECONDS", "READ_SECONDS", "limited_reads"]

READ_SECONDS = 5.0
"""Of a request. Lists and overviews take some milliseconds; what takes this long asks for too much."""

CHECK_SECONDS = 120.0
"""Of a check of the whole database, which reads every row."""
