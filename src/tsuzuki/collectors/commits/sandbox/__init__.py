"""A stand-in for GitLab."""
