"""Sources of commits: GitLab, a repository on this machine, a mirror of a git URL."""
