"""Format a value as text: lossless for machines, harmless for terminals.

Names, messages and log lines come from outside. Characters that could move the cursor, forge a line or reverse the
reading direction are written as visible escapes; in JSON they become JSON escapes, so nothing is lost.
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any
from uuid import UUID

from tsuzuki.model.visible_text import HARMFUL, neutralise


def escape_field(text: str) -> str:
    """Like `neutralise`, and reversible: a backslash in the text is doubled."""
    return neutralise(text.replace("\\", "\\\\"))


def json_value(value: object) -> Any:
    """The value in the words of JSON. An unknown type is refused, never guessed."""
    for kind, convert in _CONVERSIONS:
        if isinstance(value, kind):
            return convert(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: json_value(getattr(value, field.name)) for field in fields(value)}
    raise TypeError(f"{type(value).__name__} cannot be printed: {value!r}")


def json_text(value: object, *, indent: int | None = None, ascii_only: bool = False) -> str:
    """A JSON document that is safe on a terminal and survives any encoding if `ascii_only`."""
    text = json.dumps(json_value(value), indent=indent, ensure_ascii=ascii_only, allow_nan=False)
    return HARMFUL.sub(_json_escape, text)


def _json_escape(match: re.Match[str]) -> str:
    # Outside strings the only such character is the newline of an indented document.
    return match[0] if match[0] == "\n" else f"\\u{ord(match[0]):04x}"


def plain_text(value: object) -> str:
    """The value for `cut` and `awk`: nothing is empty, times are ISO-8601, a structure is JSON."""
    data = json_value(value)
    if data is None:
        return ""
    return data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)


def table_text(value: object) -> str:
    """The value for a reader."""
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case datetime():
            return f"{_in_utc(value):%Y-%m-%d %H:%M:%S}Z"
        case _:
            return plain_text(value)


def _in_utc(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise ValueError(f"{moment.isoformat()} has no time zone")
    return moment.astimezone(UTC)


def _iso_utc(moment: datetime) -> str:
    return _in_utc(moment).replace(tzinfo=None).isoformat() + "Z"


def _json_object(mapping: Mapping[Any, Any]) -> dict[str, Any]:
    return {plain_text(key): json_value(value) for key, value in mapping.items()}


_CONVERSIONS: tuple[tuple[Any, Any], ...] = (
    (Enum, lambda member: json_value(member.value)),
    ((str, int, type(None)), lambda value: value),
    (float, lambda number: number if math.isfinite(number) else None),
    (datetime, _iso_utc),
    ((date, time), lambda moment: moment.isoformat()),
    (timedelta, lambda span: span.total_seconds()),
    ((Decimal, UUID, PurePath), str),
    (Mapping, _json_object),
    ((list, tuple), lambda items: [json_value(item) for item in items]),
    ((set, frozenset), lambda items: sorted((json_value(item) for item in items), key=plain_text)),
)
"""The first kind that fits decides: an enum of strings is an enum, a datetime is not a date."""
