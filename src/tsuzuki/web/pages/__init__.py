"""The web page: server-rendered screens, useful without JavaScript, each with a `.json` twin of the same view."""
