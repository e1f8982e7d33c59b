"""The HTTP API of commits."""
