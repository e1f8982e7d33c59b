"""Nouns and laws: what a run is, when it is due, and who may say so. No I/O in this room."""
