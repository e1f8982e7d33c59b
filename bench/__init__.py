"""Benchmarks: figures and ratios, never assertions."""
