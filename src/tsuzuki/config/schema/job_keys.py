"""The keys that every job may have, of any kind, with their bounds and defaults."""

from typing import Annotated, Any

from pydantic import Field, JsonValue, StrictFloat, StrictInt

from tsuzuki.config.schema.annotations import keys_of
from tsuzuki.config.schema.field_types import (
    Count,
    Expects,
    Flag,
    Name,
    PositiveSeconds,
    Seconds,
    Text,
)
from tsuzuki.config.schema.strict_model import StrictModel
from tsuzuki.model.job import DAY_SECONDS, PRIORITY_MAX, PRIORITY_MIN
from tsuzuki.model.misfire import Misfire
from tsuzuki.model.overlap import ConcurrencyPolicy
from tsuzuki.model.retry import RetryPolicy
from tsuzuki.model.schedule import TRIGGER_KEYS


class Backoff(StrictModel):
    initial: Seconds = RetryPolicy.initial_seconds
    """The wait before the first retry."""
    factor: Annotated[StrictFloat, Field(ge=1, le=100), Expects("a number from 1 to 100")] = (
        RetryPolicy.factor
    )
    """By how much each wait is longer than the one before."""
    cap: Seconds = RetryPolicy.cap_seconds
    """The longest wait."""
    jitter: Annotated[StrictFloat, Field(ge=0, le=1), Expects("a number from 0 to 1")] = (
        RetryPolicy.jitter
    )
    """The share of a wait that is left to chance."""


class CommonKeys(StrictModel):
    """The keys of every job. `type` and `schedule` are validated elsewhere: see `jobs`."""

    type: Any = None
    """The kind of a job that is neither a command nor a function: the name of a collector."""
    description: Text = ""
    """What the job is for, in lists and on its page."""
    arguments: Annotated[dict[str, JsonValue], Expects("a mapping")] = Field(default_factory=dict)
    """The arguments of each run."""
    schedule: Any = None
    """When it is due: `cron`, `every`, `daily_at`, `hourly_at_minute`, `weekdays_at` or `weekly`, or a phrase such
    as `daily at 07:00`."""
    spread: Seconds = 0.0
    """Each run is due up to so much later than its tick, by an offset that is fixed for the name of the job."""
    on_event: Name | None = None
    """The type of event that starts it."""
    enabled: Flag = True
    """Off: no ticks, no events, and waiting runs are held."""
    misfire: Misfire = Misfire.ONE
    """Which of the ticks that were missed are made up for: the newest, none or all."""
    catchup_window: Seconds = DAY_SECONDS
    """Ticks older than this are not made up for."""
    concurrency_policy: ConcurrencyPolicy = ConcurrencyPolicy.FORBID
    """What a tick does that finds the last run unfinished: skip it, start anyway, or cancel the old run."""
    max_concurrent: Count | None = None
    """How many runs at once: 1, or any number with `allow`, unless said."""
    concurrency_key: Name | None = None
    """The argument whose value groups runs."""
    max_concurrent_per_key: Count | None = None
    """How many runs of one group at once."""
    priority: Annotated[
        StrictInt,
        Field(ge=PRIORITY_MIN, le=PRIORITY_MAX),
        Expects(f"a whole number from {PRIORITY_MIN} to {PRIORITY_MAX}"),
    ] = 0
    """Runs with a higher one are assigned first."""
    timeout: PositiveSeconds | None = None
    """A run that takes longer is ended as TIMED_OUT."""
    max_retries: Annotated[
        StrictInt, Field(ge=0, le=1000), Expects("a whole number from 0 to 1000")
    ] = 0
    """How often a run that failed is retried."""
    backoff: Annotated[Backoff, Expects("a mapping")] = Backoff()
    """How long to wait before a retry."""
    tags: Annotated[list[Name], Expects("a list of names")] = Field(default_factory=list)
    """Only workers with all of them take it."""


COMMON_KEYS = frozenset(keys_of(CommonKeys))
INNER_KEYS = {"backoff": frozenset(keys_of(Backoff)), "schedule": {*TRIGGER_KEYS, "timezone"}}
"""The keys of those values that are mappings with fixed keys."""
