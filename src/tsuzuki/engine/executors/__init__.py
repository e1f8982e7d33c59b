"""Executing one run: a command in a process of its own, or a Python function in a thread or event loop."""
