"""Continues the collection of every project and branch: from the head it knew to the head of today.

a collection:  collect → kit.host_pool (threads) → branch → pages, completion   ledger: what was started, how it ended
a source:      source (what can be asked) ← source_git, source_mirror, source_gitlab
what is kept:  tables ← projects, targets, pages, details, completions, ledger, statistics
"""
