"""Statements over the tables of feeds, one module per noun."""
