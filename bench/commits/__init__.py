"""Benchmark of the collection of commits."""
