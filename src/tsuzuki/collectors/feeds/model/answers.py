"""Answers: what a model said, checked against the schema, or `ModelBlocked`.

Only a finished answer is read. One JSON object with text around it is accepted: it was paid for, and it obeys the
schema. Anything else is never guessed at.
"""

import json
from collections.abc import Mapping
from typing import Any

from tsuzuki.collectors.feeds.model.protocol import (
    RAW_CHARACTERS_MAX,
    BlockCause,
    ModelAnswer,
    ModelBlocked,
    Question,
    Usage,
    Verdict,
)
from tsuzuki.collectors.feeds.tables import PreparationStep


def checked_answer(question: Question, raw: str, usage: Usage, *, model_name: str) -> ModelAnswer:
    """The answer in what a model said. Raises `ModelBlocked`."""

    def invalid(problem: str) -> ModelBlocked:
        return ModelBlocked(
            f"invalid answer of the model {model_name}: {problem}",
            why=BlockCause.INVALID,
            usage=usage,
            is_paid=True,
            raw=raw,
        )

    if not raw.strip():
        raise invalid("it is empty")
    fields = _object_in(raw)
    if fields is None:
        raise invalid("it is not a single JSON object")
    kept = raw[:RAW_CHARACTERS_MAX]
    if question.step is PreparationStep.SCREENING:
        try:
            verdict = Verdict(str(fields.get("verdict")))
        except ValueError:
            raise invalid("its verdict is not one of the requested ones") from None
        return ModelAnswer(
            verdict=verdict, text=None, why=_text(fields, "reason"), usage=usage, raw=kept
        )
    summary = _text(fields, "summary")
    if not summary:
        raise invalid("it has no summary")
    return ModelAnswer(verdict=None, text=summary, why=None, usage=usage, raw=kept)


def _text(fields: Mapping[str, Any], name: str) -> str | None:
    value = fields.get(name)
    return value.strip() or None if isinstance(value, str) else None


def _object_in(raw: str) -> Mapping[str, Any] | None:
    """The only JSON object in a text."""
    start = raw.find("{")
    if start < 0:
        return None
    try:
        found, end = json.JSONDecoder().raw_decode(raw, start)
    except (ValueError, RecursionError):
        return None
    is_only_one = "{" not in raw[end:] and "[" not in raw[:start]
    return found if isinstance(found, dict) and is_only_one else None
