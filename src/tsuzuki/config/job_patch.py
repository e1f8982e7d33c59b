"""Patch the body of a job: set some of its keys and remove others.

A key is a name (`"timeout"`), or the path to a nested value (`("backoff", "cap")`).
"""

from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any, TypeAlias

from tsuzuki.model.errors import ScheduleError
from tsuzuki.model.schedule_phrase import mapping_of_phrase

Key: TypeAlias = str | tuple[str, ...]
Changes: TypeAlias = Mapping[str, Any] | Mapping[tuple[str, ...], Any] | Mapping[Key, Any]


def patched(
    body: Mapping[str, Any], changes: Changes, removals: Collection[Key] = ()
) -> dict[str, Any]:
    """`body` without the `removals`, then with the `changes`. A missing key is no error; a mapping
    that loses its last key is removed too."""
    result = dict(body)
    for key in removals:
        result = _without(result, _path(key))
    for key, value in changes.items():
        result = _with(result, _path(key), value)
    return result


def _path(key: Key) -> tuple[str, ...]:
    return (key,) if isinstance(key, str) else key


def _without(body: Mapping[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    first, *rest = path
    others = {key: value for key, value in body.items() if key != first}
    if not rest:
        return others
    inner = _nested(body, first)
    smaller = _without(inner, tuple(rest))
    if smaller == inner:
        return dict(body)
    return {**others, first: smaller} if smaller else others


def _with(body: Mapping[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    first, *rest = path
    return {**body, first: _with(_nested(body, first), tuple(rest), value) if rest else value}


def _nested(body: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """The mapping at `key`. A schedule phrase is converted to its keys; other values have none."""
    value = body.get(key)
    if key == "schedule" and isinstance(value, str):
        with suppress(ScheduleError):
            return mapping_of_phrase(value)
    return value if isinstance(value, Mapping) else {}
