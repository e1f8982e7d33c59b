"""The reference, made from the code: `python -m tools.reference docs/reference` writes every page.

A page depends on the code alone, so a test compares what is written with what would be written now.
"""
