"""Benchmark of feeds: a run beside a bare loop of the same calls, memory, and the choice of the next item."""
