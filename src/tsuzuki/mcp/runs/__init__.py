"""The preset `runs`: jobs and runs of a workspace, through its services.

definitions (what agents see) → run_tools, run_lists (functions, loaded with the first call) → workspace (its services)
run_tasks answers for runs as tasks of the protocol.
"""
