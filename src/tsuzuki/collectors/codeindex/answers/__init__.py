"""Questions about a tree of source files, answered from its index and checked against the files themselves."""
