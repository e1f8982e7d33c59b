"""Continues the collection of every project and branch: from the head it knew to the head of today.

a collection:  collect → sources/host_pool (threads) → branch → pages, completion
               ledger: what was started, how it ended
a source:      sources/source (what can be asked) ← sources/git, sources/mirror, sources/gitlab
what is kept:  tables ← projects, targets, pages, details, completions, ledger, statistics
"""
