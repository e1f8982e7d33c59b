"""One file per peer, run by the peer's own interpreter, which knows nothing of Tsuzuki.

A file has a function per measure and ends in `answer(...)` (see `shape`). Each measures the same work, with the
settings its documentation advises for it, and looks into the peer's own store before it says how fast it was.
"""
