"""The body of a job from its spec reads to the same spec again."""

from typing import Any

import pytest
from pydantic import BaseModel, Field

from tsuzuki.config import JobKind, body_of, body_text, parse_job, parse_value
from tsuzuki.config.schema.job_kinds import NO_KINDS

BODIES: list[dict[str, Any]] = [
    {"command": ["echo", "hello"]},
    {"python": "package.module:function", "schedule": "every 10m", "tags": ["gpu", "a b"]},
    {
        "command": ["sh", "-c", "echo 'a: b'\n# no comment"],
        "environment": {"HOME": "/", "EMPTY": "", "N": "1"},
        "cwd": "/tmp",
        "description": 'Says "hello": twice',
        "arguments": {"month": 11, "deep": {"list": [1, None, "x"], "flag": True}},
        "schedule": {"weekly": {"days": ["monday", "friday"], "at": ["07:00", "19:30"]}},
        "spread": 30.0,
        "on_event": "hello.said",
        "enabled": False,
        "misfire": "all",
        "catchup_window": 3600.0,
        "concurrency_policy": "allow",
        "max_concurrent": 3,
        "concurrency_key": "month",
        "max_concurrent_per_key": 1,
        "priority": -5,
        "timeout": 12.5,
        "max_retries": 4,
        "backoff": {"initial": 1.0, "factor": 3.0, "cap": 60.0, "jitter": 0.5},
    },
    {"command": ["true"], "schedule": {"cron": "*/5 3 * * *", "timezone": "Asia/Tokyo"}},
    {"command": ["true"], "schedule": {"every": "90m", "anchor": "2026-01-01T06:00:00Z"}},
]


@pytest.mark.parametrize("body", BODIES)
def test_a_body_reads_to_the_same_job_again(body: dict[str, Any]) -> None:
    spec = parse_job("one", body, kinds=NO_KINDS, default_timezone="Europe/Berlin")
    made = body_of(spec, kinds=NO_KINDS)
    assert parse_job("one", made, kinds=NO_KINDS) == spec
    assert parse_value(body_text(made), name="definition") == made


def test_what_has_its_default_is_left_out() -> None:
    spec = parse_job("one", {"command": ["true"], "priority": 0, "enabled": True}, kinds=NO_KINDS)
    assert body_of(spec, kinds=NO_KINDS) == {"command": ["true"]}


class _Options(BaseModel):
    page_size: int = Field(40, alias="page-size")
    search: str


def test_a_job_of_another_kind_names_it_and_has_its_keys() -> None:
    kinds = {"books": JobKind(name="books", options_model=_Options)}
    body = {"type": "books", "search": "isbn", "page-size": 10}
    spec = parse_job("one", body, kinds=kinds)
    assert body_of(spec, kinds=kinds) == body
    assert body_of(parse_job("one", {**body, "page-size": 40}, kinds=kinds), kinds=kinds) == {
        "type": "books",
        "search": "isbn",
    }
