"""The names of the jobs that the engine defines itself, for work that people ask for by hand."""

BULK_ACTIONS = "bulk-actions"
VERIFICATION_RUNS = "verification-runs"
BUILT_IN = frozenset({BULK_ACTIONS, VERIFICATION_RUNS})
