"""Keys by which callers repeat a request safely: the idempotency key of a run, the dedupe key of an event."""

from tsuzuki.model.errors import UsageError

KEY_LENGTH_MAX = 255
"""In characters. An index entry of PostgreSQL has a maximum size."""


def check_key(key: str | None) -> None:
    """Raise `UsageError` (`key_length`) for an empty or too long key; None means no key."""
    if key is None or 1 <= len(key) <= KEY_LENGTH_MAX:
        return
    raise UsageError(
        f"a key must have 1 to {KEY_LENGTH_MAX} characters, not {len(key)}",
        hint="Shorten it, for example to a hash of the text, or leave it out.",
        code="key_length",
    )
