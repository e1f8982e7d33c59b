"""The options that write a job: what to run, when, and every other key."""

import pytest

from support.workspace import Workspace


@pytest.mark.parametrize(
    ("words", "written"),
    [
        (["--command", "echo 'hi there'"], {"argv": ["echo", "hi there"]}),
        (["--python", "reports.weekly:send"], {"function": "reports.weekly:send"}),
        (["--type", "command", "--command", "true"], {"argv": ["true"]}),
        (["--set", "command=[echo, hi, 5]"], {"argv": ["echo", "hi", "5"]}),
        (["--env", "A=1=2", "--env", "B.C=", "--", "x"], {"environment": {"A": "1=2", "B.C": ""}}),
        (["--set", "cwd=/srv", "--", "x"], {"cwd": "/srv"}),
    ],
)
def test_what_to_run_may_be_said_in_several_ways(
    words: list[str], written: dict[str, object], workspace: Workspace
) -> None:
    workspace.ok("job", "add", "it", *words)
    options = workspace.job("it")["options"]
    assert options | written == options


@pytest.mark.parametrize(
    ("words", "schedule"),
    [
        (["--every", "1h30m"], {"every": "1h30m"}),
        (["--every", "90"], {"every": "1m30s"}),
        (["--daily-at", "07:00"], {"daily_at": "07:00", "timezone": "UTC"}),
        (["--cron", "*/5 * * * *"], {"cron": "*/5 * * * *", "timezone": "UTC"}),
        (["--schedule", "every 10m"], {"every": "10m"}),
        (
            ["--schedule", "weekly on mon at 09:00", "--timezone", "Asia/Tokyo"],
            {"weekly": {"day": "monday", "at": "09:00"}, "timezone": "Asia/Tokyo"},
        ),
        (["--set", "schedule.hourly_at_minute=15"], {"hourly_at_minute": 15, "timezone": "UTC"}),
        (["--set", "schedule={every: 5m}"], {"every": "5m"}),
    ],
)
def test_when_to_run_may_be_said_in_several_ways(
    words: list[str], schedule: dict[str, object], workspace: Workspace
) -> None:
    workspace.ok("job", "add", "it", *words, "--", "x")
    assert workspace.job("it")["schedule"] == schedule


def test_every_other_key_can_be_said_too(workspace: Workspace) -> None:
    workspace.ok(
        *"job add it --description Why --on-event order.created --timeout 5m --max-retries 3".split(),
        *"--priority -5 --tag gpu --tag eu --disabled --set misfire=skip".split(),
        *"--set backoff.initial=5s --set backoff.jitter=0.5 --set max_concurrent=2".split(),
        *["--set", "arguments={to: [a, b], deep: {x: null}}", "--", "x"],
    )
    job = workspace.job("it")
    expected = {
        "description": "Why",
        "on_event": "order.created",
        "timeout_seconds": 300.0,
        "priority": -5,
        "tags": ["eu", "gpu"],
        "enabled": False,
        "misfire": "skip",
        "max_concurrent": 2,
        "arguments": {"to": ["a", "b"], "deep": {"x": None}},
    }
    assert job | expected == job
    assert (job["retry"]["max_retries"], job["retry"]["initial_seconds"]) == (3, 5.0)
    assert job["retry"]["jitter"] == 0.5
