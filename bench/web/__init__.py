"""Measures the HTTP API: how fast lists and counts answer beside many runs, and how fast runs are started."""
