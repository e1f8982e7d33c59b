"""The stand-ins of `tsuzuki demo`: data that looks like the real thing, always the same, every name invented."""
