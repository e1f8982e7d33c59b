"""The tools of the preset `code`: questions about a tree of source files. They need no workspace and no engine."""
