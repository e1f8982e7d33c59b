"""The types of object whose changes are audited: the values of `object_type` that this program writes."""

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
    "commits",
    "mail",
    "feed item",
    "tree",
)
"""A collector of another distribution may write others."""
