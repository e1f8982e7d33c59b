"""Keeps the public statuses of Mastodon accounts."""
