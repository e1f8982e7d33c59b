"""One file per peer, run by the peer's own interpreter, without Tsuzuki.

A file has a function per measure and ends in `answer(...)` (see `protocol`). Each measures the same work, with the
settings that the peer's documentation advises, and checks the peer's own store before it reports.
"""
