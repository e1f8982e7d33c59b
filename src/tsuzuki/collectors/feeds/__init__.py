"""Feeds: the rules of an item, from being found to being processed."""
