"""Canonical JSON, as it is stored: compact and deterministic. Values that JSON cannot express are refused early."""

import json
import re
from collections.abc import Callable
from typing import Any

from tsuzuki.model.errors import UsageError

_ENCODER = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
)

DEPTH_MAX = 64
"""How deep a value that comes from outside may be nested. Deeper ones could be stored, but not read by every reader."""

_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"?', re.DOTALL)
_NOT_BRACKET = re.compile(rb"[^\[\]{}]+")


def is_too_deep(text: bytes) -> bool:
    """Whether the value of a JSON text is nested deeper than `DEPTH_MAX`; told without reading it."""
    depth = 0
    for bracket in _NOT_BRACKET.sub(b"", _STRING.sub(b"", text)):
        depth += 1 if bracket in b"[{" else -1
        if depth > DEPTH_MAX:
            return True
    return False


def encode(value: Any, *, replace: Callable[[str], str] | None = None) -> str:
    """The canonical text of a JSON value. Raises `UsageError` for a value that JSON cannot express. `replace` may
    replace characters of the text before it is checked: a lone surrogate is not JSON."""
    try:
        text = _ENCODER.encode(value)
        text = replace(text) if replace else text
        if not text.isascii():
            text.encode("utf-8")
    except (TypeError, ValueError, RecursionError) as problem:
        raise UsageError(
            f"cannot write this value as JSON: {problem}",
            hint="Use strings, numbers, true, false, null, lists and objects with string keys.",
            code="not_json",
        ) from None
    return text


def check(value: Any) -> None:
    """Raises `UsageError` for a value that cannot be stored: none of JSON, or nested deeper than `DEPTH_MAX`."""
    text = encode(value)
    # Most values have few brackets: they are counted much faster than matched.
    if text.count("{") + text.count("[") > DEPTH_MAX and is_too_deep(text.encode("utf-8")):
        raise UsageError(
            f"this value is nested more than {DEPTH_MAX} levels deep",
            hint="Send the inner part as text.",
            code="too_deep",
        )


def is_same(stored: Any, value: Any) -> bool:
    """Whether a value would be read back as this stored one. Unlike `==` it tells 1, 1.0 and true apart, and takes a
    tuple for a list."""
    return encode(stored) == encode(decode(encode(value)))


def decode(text: str) -> Any:
    """The inverse of `encode`."""
    return {} if text == "{}" else json.loads(text)
