"""Posting: the text of a post, its way out, and its changes afterwards."""
