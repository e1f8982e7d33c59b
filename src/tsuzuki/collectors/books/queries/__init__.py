"""Statements over the tables of books, one module per noun."""
