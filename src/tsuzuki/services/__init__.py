"""One door for every face: each use-case once, whoever asks."""
