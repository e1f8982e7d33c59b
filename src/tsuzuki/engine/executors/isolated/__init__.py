"""Python functions in processes of their own: warm children that are reused, each under a supervisor that can kill it.

A child is a command to its supervisor, and all that holds for commands holds for it: it ends with its worker, at the
deadline of a paused worker, and when it is told to, with every process that it has started.
"""
