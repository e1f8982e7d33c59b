"""Benchmark of the engine, beside peers and a floor measured in the same run."""
