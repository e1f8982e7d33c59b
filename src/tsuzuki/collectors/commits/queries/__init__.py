"""Statements over the tables of commits, one module per noun."""
