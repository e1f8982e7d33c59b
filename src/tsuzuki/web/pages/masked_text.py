"""Edits of what was shown with its secrets masked: what was left as it was shown keeps its secret."""

from typing import Any

from tsuzuki.model.errors import UsageError
from tsuzuki.model.secrets import MASK


def with_secrets(given: Any, stored: Any, masked: Any) -> Any:
    """`given`, with each part that is as in `masked` replaced by that of `stored`. Raises `UsageError` if a text
    that was changed still has a mask in it."""
    if given == masked:
        return stored
    if isinstance(given, dict):
        old, shown = _mapping(stored), _mapping(masked)
        return {
            key: with_secrets(value, old.get(key), shown.get(key)) for key, value in given.items()
        }
    if isinstance(given, list):
        count = len(given)
        parts = zip(given, _items(stored, count), _items(masked, count), strict=True)
        return [with_secrets(*part) for part in parts]
    if isinstance(given, str) and MASK in given and MASK not in str(stored):
        raise UsageError(
            f"a secret is masked in {given!r}",
            hint=f"Write it in full in place of {MASK}, or leave the whole value as it was.",
            code="secret_masked",
        )
    return given


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _items(value: Any, length: int) -> list[Any]:
    found = value if isinstance(value, list) else []
    return [*found[:length], *[None] * (length - len(found))]
