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


class Backoff(StrictModel):
    initial: Seconds = RetryPolicy.initial_seconds
    factor: Annotated[StrictFloat, Field(ge=1, le=100), Expects("a number from 1 to 100")] = (
        RetryPolicy.factor
    )
    cap: Seconds = RetryPolicy.cap_seconds
    jitter: Annotated[StrictFloat, Field(ge=0, le=1), Expects("a number from 0 to 1")] = (
        RetryPolicy.jitter
    )


class CommonKeys(StrictModel):
    """The keys of every job. `type` and `schedule` are validated elsewhere: see `jobs`."""

    type: Any = None
    description: Text = ""
    arguments: Annotated[dict[str, JsonValue], Expects("a mapping")] = Field(default_factory=dict)
    schedule: Any = None
    spread: Seconds = 0.0
    on_event: Name | None = None
    enabled: Flag = True
    misfire: Misfire = Misfire.ONE
    catchup_window: Seconds = DAY_SECONDS
    concurrency_policy: ConcurrencyPolicy = ConcurrencyPolicy.FORBID
    max_concurrent: Count | None = None
    concurrency_key: Name | None = None
    max_concurrent_per_key: Count | None = None
    priority: Annotated[
        StrictInt,
        Field(ge=PRIORITY_MIN, le=PRIORITY_MAX),
        Expects(f"a whole number from {PRIORITY_MIN} to {PRIORITY_MAX}"),
    ] = 0
    timeout: PositiveSeconds | None = None
    max_retries: Annotated[
        StrictInt, Field(ge=0, le=1000), Expects("a whole number from 0 to 1000")
    ] = 0
    backoff: Annotated[Backoff, Expects("a mapping")] = Backoff()
    tags: Annotated[list[Name], Expects("a list of names")] = Field(default_factory=list)


COMMON_KEYS = frozenset(keys_of(CommonKeys))
