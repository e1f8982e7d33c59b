"""The tool set `code`: questions about a tree of source files. They need no workspace and no engine."""
