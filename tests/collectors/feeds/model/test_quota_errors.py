"""What a 429 means: the ids of quotas first, then delays, then text; the day wins."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tsuzuki.collectors.feeds.model.quota_errors import LimitKind, error_body, limit_of

NOON = datetime(2026, 7, 1, 12, 0, tzinfo=UTC)
MIDNIGHT = datetime(2026, 7, 2, 7, 0, tzinfo=UTC)


def google(
    *quota_ids: str, delay: object = None, message: str = "Quota exceeded.", **violation: str
) -> dict[str, Any]:
    details: list[dict[str, Any]] = []
    if quota_ids:
        violations = [{"quotaId": quota_id, **violation} for quota_id in quota_ids]
        details.append({"@type": "QuotaFailure", "violations": violations})
    if delay is not None:
        details.append({"@type": "RetryInfo", "retryDelay": delay})
    return {"error": {"code": 429, "message": message, "details": details}}


def openai(message: str, code: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "requests", "code": code}}


PER_MINUTE = "GenerateRequestsPerMinutePerProjectPerModel-FreeTier"
PER_DAY = "GenerateRequestsPerDayPerProjectPerModel-FreeTier"
TOKENS = "GenerateContentInputTokensPerModelPerMinute-FreeTier"


@pytest.mark.parametrize(
    ("document", "kind", "seconds"),
    [
        (google(PER_MINUTE, delay="26s"), LimitKind.SHORT, 26),
        (google(TOKENS, delay="26.5s"), LimitKind.SHORT, 26.5),
        (google(PER_MINUTE, delay={"seconds": "7", "nanos": 500_000_000}), LimitKind.SHORT, 7.5),
        (google(PER_MINUTE, message="Please retry in 1m2.5s."), LimitKind.SHORT, 62.5),
        (google(PER_MINUTE, message="exceeded your daily use"), LimitKind.SHORT, 60),
        (google(message="Please retry in 36.4s."), LimitKind.SHORT, 36.4),
        (google(message="Please retry in 200ms."), LimitKind.SHORT, 1),
        (google(delay="9s", message="Please retry in 36.4s."), LimitKind.SHORT, 9),
        (google(delay="999999s"), LimitKind.SHORT, 86_400),
        (google(delay="soon"), LimitKind.SHORT, 60),
        (google(delay=36), LimitKind.SHORT, 60),
        (google(delay={"seconds": []}), LimitKind.SHORT, 60),
        (google(message="Please check your plan and billing details."), LimitKind.SHORT, 60),
        (openai("Please try again in 6m0s.", "rate_limit_exceeded"), LimitKind.SHORT, 360),
        (
            openai(
                "Limit on tokens per day (TPD). Please try again in 7m12s.", "rate_limit_exceeded"
            ),
            LimitKind.SHORT,
            432,
        ),
        ({}, LimitKind.SHORT, 60),
        (None, LimitKind.SHORT, 60),
        ([], LimitKind.SHORT, 60),
        ({"error": "slow down"}, LimitKind.SHORT, 60),
        ([google(PER_MINUTE, delay="26s")], LimitKind.SHORT, 26),
        (google(PER_DAY, delay="36s"), LimitKind.DAY, None),
        (google(PER_MINUTE, PER_DAY, delay="36s"), LimitKind.DAY, None),
        (google(PER_DAY, PER_MINUTE), LimitKind.DAY, None),
        ([google(PER_DAY, delay="36s")], LimitKind.DAY, None),
        (google(delay="36s", message="Requests per day exceeded."), LimitKind.DAY, None),
        (openai("You exceeded your current quota.", "insufficient_quota"), LimitKind.DAY, None),
        (google(PER_DAY, message="metric: x, limit: 0, model: y"), LimitKind.NOT_IN_PLAN, None),
        (google(PER_DAY, quotaValue="0"), LimitKind.NOT_IN_PLAN, None),
        (google(PER_DAY, message="limit: 0.5"), LimitKind.DAY, None),
        (google(PER_MINUTE, delay="26s", message="limit: 05"), LimitKind.SHORT, 26),
    ],
)
def test_a_limit_is_read(document: object, kind: LimitKind, seconds: float | None) -> None:
    limit = limit_of(error_body(document), now=NOON)
    assert limit.kind is kind
    until = MIDNIGHT if seconds is None else NOON + timedelta(seconds=seconds)
    assert limit.until == until
    assert limit.probe_at == (NOON + timedelta(hours=1) if seconds is None else until)


def test_the_header_counts_if_the_details_name_no_delay() -> None:
    body = error_body(google(message="Please retry in 36.4s."))
    assert limit_of(body, now=NOON, retry_after_seconds=5).until == NOON + timedelta(seconds=5)
    body = error_body(google(delay="9s"))
    assert limit_of(body, now=NOON, retry_after_seconds=5).until == NOON + timedelta(seconds=9)


@pytest.mark.parametrize(
    ("now", "midnight"),
    [
        # Winter time, summer time, and the days of 23 and 25 hours on which the clocks change.
        ("2026-01-15T07:59:59", "2026-01-15T08:00:00"),
        ("2026-01-15T08:00:00", "2026-01-16T08:00:00"),
        ("2026-07-15T06:59:59", "2026-07-15T07:00:00"),
        ("2026-07-15T07:00:00", "2026-07-16T07:00:00"),
        ("2026-03-08T08:00:00", "2026-03-09T07:00:00"),
        ("2026-03-08T10:30:00", "2026-03-09T07:00:00"),
        ("2026-11-01T07:00:00", "2026-11-02T08:00:00"),
        ("2026-11-01T09:30:00", "2026-11-02T08:00:00"),
    ],
)
def test_a_day_ends_at_midnight_pacific_time(now: str, midnight: str) -> None:
    moment = datetime.fromisoformat(now).replace(tzinfo=UTC)
    limit = limit_of(error_body(google(PER_DAY)), now=moment)
    assert limit.until == datetime.fromisoformat(midnight).replace(tzinfo=UTC)
    assert limit.probe_at == min(moment + timedelta(hours=1), limit.until)
