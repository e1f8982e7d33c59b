"""A job's body after keys were set and taken out."""

from collections.abc import Mapping
from typing import Any

import pytest

from tsuzuki.config.job_patch import Key, patched

BODY = {
    "command": "x",
    "backoff": {"initial": "5s", "cap": "1h"},
    "schedule": {"every": "10m", "timezone": "Asia/Tokyo"},
}


@pytest.mark.parametrize(
    ("changes", "removals", "different"),
    [
        ({}, [], {}),
        ({"timeout": "5m"}, [], {"timeout": "5m"}),
        ({("timeout",): "5m"}, [], {"timeout": "5m"}),
        ({("backoff", "cap"): "2h"}, [], {"backoff": {"initial": "5s", "cap": "2h"}}),
        ({("arguments", "a", "b"): 1}, [], {"arguments": {"a": {"b": 1}}}),
        ({"backoff": {"cap": 1}}, [], {"backoff": {"cap": 1}}),
        ({("command", "a"): 1}, [], {"command": {"a": 1}}),
        ({}, [("backoff", "cap")], {"backoff": {"initial": "5s"}}),
        ({}, ["nothing", ("nothing", "at", "all"), ("command", "x")], {}),
        (
            {("schedule", "daily_at"): "07:00"},
            [("schedule", "every"), ("schedule", "cron")],
            {"schedule": {"timezone": "Asia/Tokyo", "daily_at": "07:00"}},
        ),
    ],
)
def test_only_what_is_named_differs(
    changes: Mapping[Key, Any], removals: list[Key], different: dict[str, Any]
) -> None:
    assert patched(BODY, changes, removals) == {**BODY, **different}


def test_a_key_is_taken_out_and_with_it_a_mapping_that_has_no_other() -> None:
    removals: list[Key] = ["schedule", ("backoff", "initial"), ("backoff", "cap")]
    assert patched(BODY, {}, removals) == {"command": "x"}


def test_a_schedule_in_words_is_taken_apart_to_be_changed() -> None:
    body = {"schedule": "daily at 07:00"}
    assert patched(body, {("schedule", "timezone"): "UTC"}) == {
        "schedule": {"daily_at": ["07:00"], "timezone": "UTC"}
    }
    assert patched({"schedule": "whenever"}, {("schedule", "every"): "1h"}) == {
        "schedule": {"every": "1h"}
    }


def test_the_body_handed_in_stays_as_it_was() -> None:
    before = {"backoff": {"cap": "1h"}}
    patched(before, {("backoff", "cap"): "2h"}, [("backoff", "cap")])
    assert before == {"backoff": {"cap": "1h"}}
