"""Feeds benchmark: a run compared with a bare loop, memory, and selection of the next item."""
