"""The options of a job, and of one submit, as type checkers see them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, TypeAlias, TypedDict

from tsuzuki.wiring.library import CallerConnection

Duration: TypeAlias = float | str | timedelta
"""Seconds, a text such as `10m`, or a timedelta."""


class BackoffOptions(TypedDict, total=False):
    """How long to wait before a retry."""

    initial: Duration
    factor: float
    cap: Duration
    jitter: float


class JobOptions(TypedDict, total=False):
    """The keys of a job in `tsuzuki.yaml`, for `@app.job(…)`."""

    description: str
    arguments: Mapping[str, object]
    schedule: str | Mapping[str, object]
    spread: Duration
    on_event: str
    enabled: bool
    misfire: Literal["one", "skip", "all"]
    catchup_window: Duration
    concurrency_policy: Literal["forbid", "allow", "replace"]
    max_concurrent: int
    concurrency_key: str
    max_concurrent_per_key: int
    priority: int
    timeout: Duration
    max_retries: int
    backoff: BackoffOptions
    tags: Sequence[str]
    isolation: Literal["thread", "process"]
    memory: str


@dataclass(frozen=True, kw_only=True)
class SubmitOptions:
    """How a run is submitted. `connection` is the caller's own, in whose transaction it is stored."""

    idempotency_key: str | None = None
    delay_seconds: float = 0.0
    priority: int | None = None
    concurrency_key: str | None = None
    connection: CallerConnection | None = None


def body_of(options: Mapping[str, object]) -> dict[str, object]:
    """The options as they are written in the file."""
    return {name: _written(value) for name, value in options.items()}


def _written(value: object) -> object:
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Mapping):
        return {name: _written(inner) for name, inner in value.items()}
    if isinstance(value, tuple | set | frozenset):
        return [*value]
    return value
