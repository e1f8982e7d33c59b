"""Collects the public statuses of Mastodon accounts."""
