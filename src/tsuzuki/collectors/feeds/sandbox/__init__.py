"""Stand-ins for a site with feeds, for language models and for Mastodon."""
