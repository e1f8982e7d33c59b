"""Symbols from a language server, for the languages for which one is configured.

settings ← servers (one server per language and build) → client (the protocol) → server_process → framing
                  └→ document_symbols (an answer as definitions)

A file that a server fails on has failed, with the reason; its old symbols stay. References always come from the parser.
"""
