"""From a file to job specifications."""

import textwrap
from typing import Any

import pytest
from pydantic import BaseModel

from config.book_kind import read
from tsuzuki.config import InvalidFile, JobKind, parse_job
from tsuzuki.model.job import JobSpec
from tsuzuki.model.misfire import Misfire
from tsuzuki.model.overlap import ConcurrencyPolicy
from tsuzuki.model.retry import RetryPolicy
from tsuzuki.model.schedule import parse_schedule


def job(text: str) -> JobSpec:
    (spec,) = read("jobs:\n  it:\n" + textwrap.indent(textwrap.dedent(text), "    ")).jobs
    return spec


def test_a_file_that_says_nothing_has_no_jobs_and_all_defaults() -> None:
    for text in ("", "# nothing\n", "jobs:\n", "jobs: {}\n", "version: 1\n"):
        content = read(text)
        assert content.jobs == ()
        assert content.timezone == "UTC"
        assert content.database_url is None


def test_a_command_with_nothing_else_gets_the_defaults_of_a_job() -> None:
    assert job('command: ["echo", "hello"]') == JobSpec(
        name="it",
        handler="command",
        options={"argv": ["echo", "hello"], "environment": {}, "cwd": None},
    )


def test_every_key_of_a_job_reaches_its_specification() -> None:
    spec = job(
        """\
        description: All of it
        command: [run, --fast, 3, true]
        environment: {TOKEN: "${SECRET}", COUNT: 3, ON: true}
        cwd: /srv
        arguments: {a: [1, 2.5, null], b: {c: text}}
        schedule: {daily_at: "09:00"}
        on_event: order.created
        enabled: false
        misfire: all
        catchup_window: 1h30m
        concurrency_policy: replace
        max_concurrent: 3
        concurrency_key: customer
        max_concurrent_per_key: 2
        priority: -7
        timeout: 90
        max_retries: 4
        backoff: {initial: 5s, factor: 3, cap: 10m, jitter: 0}
        tags: [gpu, fast]
        """
    )
    assert spec == JobSpec(
        name="it",
        handler="command",
        options={
            "argv": ["run", "--fast", "3", "true"],
            "environment": {"TOKEN": "${SECRET}", "COUNT": "3", "ON": "true"},
            "cwd": "/srv",
        },
        arguments={"a": [1, 2.5, None], "b": {"c": "text"}},
        description="All of it",
        enabled=False,
        schedule=parse_schedule({"daily_at": "09:00"}),
        on_event="order.created",
        misfire=Misfire.ALL,
        catchup_window_seconds=5400.0,
        concurrency_policy=ConcurrencyPolicy.REPLACE,
        max_concurrent=3,
        concurrency_key="customer",
        max_concurrent_per_key=2,
        priority=-7,
        timeout_seconds=90.0,
        retry=RetryPolicy(max_retries=4, initial_seconds=5, factor=3, cap_seconds=600, jitter=0),
        tags=frozenset({"gpu", "fast"}),
    )


def test_variables_of_a_job_are_not_filled_in_so_secrets_reach_no_database() -> None:
    assert job("command: x\nenvironment: {A: '${HOME}'}").options["environment"] == {"A": "${HOME}"}


@pytest.mark.parametrize(
    ("written", "argv"),
    [
        ("echo hello world", ["echo", "hello", "world"]),
        ("\"echo 'a b' c\\\\ d\"", ["echo", "a b", "c d"]),
        ("cut -d '|' -f 2", ["cut", "-d", "|", "-f", "2"]),
        ("[echo, '|']", ["echo", "|"]),
    ],
)
def test_a_command_may_be_text_that_is_split_like_a_shell_would(
    written: str, argv: list[str]
) -> None:
    assert job(f"command: {written}").options["argv"] == argv


@pytest.mark.parametrize("kind", ["", "type: python\n"])
def test_a_python_job_names_its_function(kind: str) -> None:
    spec = job(f'{kind}python: "package.module:Class.method"')
    assert spec.handler == "python"
    assert spec.options == {"function": "package.module:Class.method"}


def test_the_kind_of_a_command_may_be_spelt_out() -> None:
    assert job("type: command\ncommand: x").options["argv"] == ["x"]


def test_a_kind_handed_in_reads_its_own_keys() -> None:
    spec = job("type: books\nquery: {text: sea}\nlanguage: ja\ntimeout: 5m")
    assert spec.handler == "books"
    assert spec.options == {
        "query": {"text": "sea", "pages_max": 10},
        "language": "ja",
        "shelf": "new",
        "limit": 5,
    }
    assert spec.timeout_seconds == 300


def test_a_kind_cannot_take_a_key_that_every_job_has() -> None:
    class Greedy(BaseModel):
        schedule: str

    with pytest.raises(ValueError, match="schedule"):
        JobKind(name="greedy", options_model=Greedy)


def test_schedules_without_a_zone_are_in_the_zone_of_the_file() -> None:
    content = read(
        """\
        timezone: Asia/Tokyo
        jobs:
          here: {command: x, schedule: {daily_at: "09:00"}}
          there: {command: x, schedule: {daily_at: "09:00", timezone: Europe/Berlin}}
        """
    )
    here, there = content.jobs
    assert here.schedule == parse_schedule({"daily_at": "09:00", "timezone": "Asia/Tokyo"})
    assert there.schedule == parse_schedule({"daily_at": "09:00", "timezone": "Europe/Berlin"})


def test_jobs_share_what_they_have_in_common_by_anchors() -> None:
    content = read(
        """\
        jobs:
          one: &common
            command: one
            timeout: 5m
            max_retries: 3
          two:
            <<: *common
            command: two
        """
    )
    assert [spec.timeout_seconds for spec in content.jobs] == [300, 300]
    assert [spec.options["argv"] for spec in content.jobs] == [["one"], ["two"]]


def test_a_body_that_comes_from_no_file_is_read_by_the_same_rules() -> None:
    body: dict[str, Any] = {"command": "echo hi", "schedule": {"every": "10m"}}
    assert parse_job("it", body, kinds={}).options["argv"] == ["echo", "hi"]
    with pytest.raises(InvalidFile) as caught:
        parse_job("it", {**body, "priority": "high"}, kinds={})
    assert caught.value.place is None
    assert caught.value.message.startswith("`priority` must be")
