"""Read YAML with the line and column of every value, and edit its text without losing a comment."""
