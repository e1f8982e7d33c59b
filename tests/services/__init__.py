"""The proof of the services: each use-case as its caller sees it, on both databases."""
