"""The keys of every job."""

from config.schema.definitions import job
from tsuzuki.model.job import JobSpec
from tsuzuki.model.misfire import Misfire
from tsuzuki.model.overlap import ConcurrencyPolicy
from tsuzuki.model.retry import RetryPolicy
from tsuzuki.model.schedule import parse_schedule


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
