"""Commits: collect the new commits of every followed branch, from the last known head to the current one.

a collection:  collect → sources/host_pool (threads) → branch → pages, completion
               ledger: what was started, how it ended
a source:      sources/source (its interface) ← sources/git, sources/mirror, sources/gitlab
stored data:   tables ← projects, targets, pages, details, completions, ledger, statistics
"""
