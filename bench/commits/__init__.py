"""Measures the collection of commits."""
