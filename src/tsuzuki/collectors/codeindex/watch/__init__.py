"""Following a tree: which process does it, which folders are watched, what changed, what is told."""
