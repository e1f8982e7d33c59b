"""Canonical JSON, as it is stored: compact and deterministic. Values that JSON cannot express are refused early."""

import json
from typing import Any

from tsuzuki.model.errors import UsageError

_ENCODER = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
)


def encode(value: Any) -> str:
    """The canonical text of a JSON value. Raises `UsageError` for a value that JSON cannot express."""
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
    """The inverse of `encode`."""
    return {} if text == "{}" else json.loads(text)
