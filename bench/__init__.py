"""Measurements: figures and ratios, never assertions."""
