"""Parsing: files in, symbols and references out, in processes of their own."""
