"""The code index over HTTP."""
