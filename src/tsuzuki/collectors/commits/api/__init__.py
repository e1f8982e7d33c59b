"""Commits over HTTP."""
