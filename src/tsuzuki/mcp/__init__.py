"""MCP: tools for coding agents, over stdio and streamable HTTP.

a call:     server → arguments (checked, aliases) → the tool's function, in a thread → answer (both channels)
a tool:     tool (its definition) ← tool_set ← presets (`runs`, and the sets of the collectors)
an answer:  paging (ladder of forms, cursor) → tokens (the budget)

`tools/list` needs only the definitions; a tool's function is loaded with the first call.
"""
