"""Feeds: each article screened once, summarised once and posted once, whatever crashes in between."""
