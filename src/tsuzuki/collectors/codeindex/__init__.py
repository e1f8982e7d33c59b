"""Code index: files, symbols and references of a tree, in an SQLite file of its own.

a build:       builds/job (what is told of it) ← builds/builder → tree/scan, parsing/pool → parsing/parse → extract
                                                                └→ lsp (definitions of a language server)
what is kept:  index_file (where, and is it usable) ← queries
an answer:     service/answers → answers/consistent_answer → answers/freshness → the files, queries
"""
