"""JSON as we keep it: compact, deterministic, and refused early when it cannot be kept."""

import json
from typing import Any

from tsuzuki.model.errors import UsageError

_ENCODER = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
)


def encode(value: Any) -> str:
    """The one text form of a JSON value. Raises `UsageError` for whatever JSON cannot hold."""
    try:
        text = _ENCODER.encode(value)
        if not text.isascii():
            text.encode("utf-8")
    except (TypeError, ValueError, RecursionError) as problem:
        raise UsageError(
            f"this value cannot be written as JSON: {problem}",
            hint="Use strings, numbers, true, false, null, lists and objects with string keys.",
            code="not_json",
        ) from None
    return text


def decode(text: str) -> Any:
    """What `encode` was given."""
    return {} if text == "{}" else json.loads(text)
