"""The types of object whose changes the engine audits: values of `object_type`. Collectors have others (`audited`)."""

OBJECT_TYPES = (
    "job",
    "run",
    "bulk",
    "failure_group",
    "event",
    "worker",
    "leader",
    "setting",
    "view",
    "user",
    "token",
    "session",
    "setup_code",
    "owner_link",
)
