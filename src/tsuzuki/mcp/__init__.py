"""MCP: tools for coding agents, over stdio and streamable HTTP.

a call:     server → arguments (checked, aliases) → the tool's function, in a thread → answer (both channels)
a tool:     tool (its definition) ← code/definitions; its function is loaded with the first call
an answer:  paging (ladder of forms, cursor) → tokens (the budget)

`tools/list` needs none of the collectors: they are loaded after it was answered.
"""
