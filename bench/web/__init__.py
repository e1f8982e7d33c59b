"""HTTP API benchmark: lists and counts with many stored runs, and starting runs."""
