"""What differs between two values of a change, part by part."""

from collections.abc import Iterator, Mapping
from typing import Any


def differences(before: Any, after: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Each single value that differs, with the way to it."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in {**before, **after}:
            yield from differences(before.get(key), after.get(key), f"{path}.{key}")
    elif before != after:
        yield path.removeprefix("."), before, after
