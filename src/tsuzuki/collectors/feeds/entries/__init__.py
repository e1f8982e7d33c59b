"""Entries of a feed: parsed out of its document, recognised, and stored as items."""
