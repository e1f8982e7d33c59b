"""Quota errors: what a 429 means, read from its body.

The ids of the violated quotas come first: an error about the day carries a delay of seconds too, which is not
true. Then the delay that the details, the header or the text name. Of several quotas the longest decides.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, auto
from typing import Any
from zoneinfo import ZoneInfo

from tsuzuki.collectors.kit.zone_day import day_of

RESET_ZONE = ZoneInfo("America/Los_Angeles")
"""The allowances of Gemini's days are renewed at midnight Pacific time."""

MINUTE_SECONDS = 60.0
DELAY_MAX_SECONDS = 86_400.0
PROBE_AFTER = timedelta(hours=1)
"""A day's allowance may be raised before midnight, or the error may be wrong: one request an hour finds out."""

_NO_LIMIT = re.compile(r"\blimit:\s*0(?![\d.])", re.IGNORECASE)
_PER_DAY = re.compile(r"per[\s_-]*day|\bdaily\b", re.IGNORECASE)
_DELAY_IN_TEXT = re.compile(
    r"(?:retry|try again)\s+(?:in|after)\s+((?:\d+(?:\.\d+)?\s*(?:ms|h|m|s)[a-z]*\s*)+)",
    re.IGNORECASE,
)
_PIECE = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|h|m|s)", re.IGNORECASE)
_UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0}
OUT_OF_CREDIT = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
"""Waiting alone does not help, but credit may be bought at any time: it is found out every hour."""
_ROLLING = "rate_limit_exceeded"
"""OpenAI's days are the last 24 hours, so that its delays are true."""


class LimitKind(Enum):
    """For how long a model is not to be asked."""

    NOT_IN_PLAN = auto()
    """For good: the plan of this key allows the model no request at all."""

    DAY = auto()
    SHORT = auto()


@dataclass(frozen=True, kw_only=True)
class Limit:
    """`probe_at` is when one request may find out whether the limit still holds."""

    kind: LimitKind
    until: datetime
    probe_at: datetime


@dataclass(frozen=True, kw_only=True)
class ErrorBody:
    """What an error says, in the forms of Google, of OpenAI and of the servers that follow them."""

    message: str = ""
    codes: frozenset[str] = frozenset()
    details: tuple[Mapping[str, Any], ...] = ()
    is_json: bool = False


def error_body(document: object) -> ErrorBody:
    """The error in a JSON document; of anything else there is nothing to say."""
    if isinstance(document, list) and document:  # Gemini's own endpoint for OpenAI's clients
        document = document[0]
    if not isinstance(document, Mapping):
        return ErrorBody()
    error = document.get("error", document)
    if not isinstance(error, Mapping):
        return ErrorBody(message=str(error), is_json=True)
    details = tuple(one for one in _listed(error.get("details")) if isinstance(one, Mapping))
    named = [error.get(key) for key in ("status", "code", "type")]
    named += [detail.get("reason") for detail in details]
    return ErrorBody(
        message=str(error.get("message") or error.get("detail") or ""),
        codes=frozenset(name for name in named if isinstance(name, str)),
        details=details,
        is_json=True,
    )


def limit_of(body: ErrorBody, *, now: datetime, retry_after_seconds: float | None = None) -> Limit:
    """What a 429 means. `retry_after_seconds` is what its header says."""
    violations = [
        violation
        for detail in body.details
        for violation in _listed(detail.get("violations"))
        if isinstance(violation, Mapping)
    ]
    quota_ids = [str(one["quotaId"]) for one in violations if one.get("quotaId")]
    is_zero = any(str(one.get("quotaValue", "")) == "0" for one in violations)
    delay = _delay_seconds(body, retry_after_seconds)
    if is_zero or _NO_LIMIT.search(body.message):
        return _until_midnight(LimitKind.NOT_IN_PLAN, now)
    if any(_PER_DAY.search(quota_id) for quota_id in quota_ids) or body.codes & OUT_OF_CREDIT:
        return _until_midnight(LimitKind.DAY, now)
    is_delay_true = delay is not None and _ROLLING in body.codes
    if not quota_ids and _PER_DAY.search(body.message) and not is_delay_true:
        return _until_midnight(LimitKind.DAY, now)
    seconds = MINUTE_SECONDS if delay is None else min(max(delay, 1.0), DELAY_MAX_SECONDS)
    until = now + timedelta(seconds=seconds)
    return Limit(kind=LimitKind.SHORT, until=until, probe_at=until)


def _until_midnight(kind: LimitKind, now: datetime) -> Limit:
    until = day_of(now, RESET_ZONE).ends_at
    return Limit(kind=kind, until=until, probe_at=min(now + PROBE_AFTER, until))


def _delay_seconds(body: ErrorBody, retry_after_seconds: float | None) -> float | None:
    for detail in body.details:
        seconds = _duration(detail.get("retryDelay"))
        if seconds is not None:
            return seconds
    if retry_after_seconds is not None:
        return retry_after_seconds
    found = _DELAY_IN_TEXT.search(body.message)
    return _duration(found[1]) if found else None


def _duration(value: object) -> float | None:
    """Seconds of "36s", "36.4s", "1m30s" or {"seconds": 36, "nanos": 0}."""
    if isinstance(value, Mapping):
        numbers = (value.get("seconds", 0), value.get("nanos", 0))
        try:
            return float(numbers[0]) + float(numbers[1]) / 1e9
        except (TypeError, ValueError):
            return None
    pieces = _PIECE.findall(value) if isinstance(value, str) and len(value) < 100 else []
    if not pieces:
        return None
    return sum(float(number) * _UNIT_SECONDS[unit.lower()] for number, unit in pieces)


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
