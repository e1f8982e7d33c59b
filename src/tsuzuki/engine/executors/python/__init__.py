"""Python functions as handlers: found by name, called in a thread or on an event loop."""
