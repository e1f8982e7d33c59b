"""The counts that a handler may report as the progress of its run."""

from tsuzuki.model.errors import UsageError

COUNT_MAX = 2**63 - 1
"""The largest number the database can hold."""


def require_counts(processed: object, total: object) -> None:
    """Raise `UsageError` (`progress`) for what cannot be stored as the progress of a run."""
    if not _is_count(processed) or not (total is None or _is_count(total)):
        raise UsageError(
            f"invalid progress: {processed!r} of {total!r}",
            hint="Use whole numbers from 0; leave out the total if it is unknown.",
            code="progress",
        )


def _is_count(value: object) -> bool:
    # Not a bool, though that is an int: PostgreSQL cannot store it as a number.
    return type(value) is int and 0 <= value <= COUNT_MAX
