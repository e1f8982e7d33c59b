"""The use-cases of commits, for every face: projects, targets and results; bulk runs."""
