"""Feeds: each article screened once, summarised once and posted once, also across crashes."""
