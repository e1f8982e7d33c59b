"""Mutation testing by sample: how many of some random small changes of `src` does a test notice?

Each mutant is one change in one file. It is run against the tests that reach its line, and is killed when one of them
fails. The survivors show which rules no test guards.
"""
