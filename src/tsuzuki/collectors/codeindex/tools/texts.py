"""Pieces of text that several answers have."""

from collections.abc import Iterable, Iterator
from typing import Any

from tsuzuki.mcp.tokens import clipped


def listed_texts(value: Any) -> list[str]:
    """One text or several, as a list."""
    if value is None:
        return []
    return [value] if isinstance(value, str) else list(dict.fromkeys(value))


def places_by_file(places: Iterable[tuple[str, str]], width: int) -> Iterator[str]:
    """`path: place, place`, files in the order in which they first come."""
    by_file: dict[str, list[str]] = {}
    for path, place in places:
        by_file.setdefault(path, []).append(clipped(place, width // 4))
    for path, found in by_file.items():
        yield f"{clipped(path, width // 2)}: {', '.join(found)}"
