"""The statements over the index file of a tree, one function each. No other module of the collector has SQL.

A function that writes is called inside `IndexFile.transaction`.
"""
