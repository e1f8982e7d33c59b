"""The files of a tree: found with git or without, hashed, and opened without harm."""
