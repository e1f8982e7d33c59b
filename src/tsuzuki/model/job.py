"""A job: handler, schedule and rules. `JobSpec` is before storing, `Job` after it."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from tsuzuki.model import jsontext
from tsuzuki.model.errors import ConfigurationError
from tsuzuki.model.misfire import Misfire, TickPlan, plan_ticks
from tsuzuki.model.overlap import ConcurrencyPolicy
from tsuzuki.model.retry import RetryPolicy
from tsuzuki.model.schedule import Schedule, upcoming

NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
PRIORITY_MIN, PRIORITY_MAX = -1000, 1000
DAY_SECONDS = 86_400.0


class JobSource(StrEnum):
    """Where a job is defined, and so where it is changed."""

    FILE = "file"
    """In `tsuzuki.yaml`; the database has a copy that follows the file."""

    DATABASE = "database"
    """Created through the API, the web or the library; stored in the database only."""


@dataclass(frozen=True, kw_only=True)
class JobSpec:
    """The definition of a job. `handler` is the kind of work ("command", "python", or a collector's), `options`
    are that handler's, `arguments` those of each run. `concurrency_key` names the argument whose value groups
    runs for `max_concurrent_per_key`. `spread_seconds` is over how long ticks that many jobs share are spread."""

    name: str
    handler: str
    options: Mapping[str, Any] = field(default_factory=dict)
    arguments: Mapping[str, Any] = field(default_factory=dict)
    description: str = ""
    enabled: bool = True
    schedule: Schedule | None = None
    spread_seconds: float = 0.0
    on_event: str | None = None
    misfire: Misfire = Misfire.ONE
    catchup_window_seconds: float = DAY_SECONDS
    concurrency_policy: ConcurrencyPolicy = ConcurrencyPolicy.FORBID
    max_concurrent: int | None = None
    concurrency_key: str | None = None
    max_concurrent_per_key: int | None = None
    priority: int = 0
    timeout_seconds: float | None = None
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    tags: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if not NAME_PATTERN.fullmatch(self.name):
            raise ConfigurationError(
                f"{self.name!r} cannot be a job name",
                hint="Use letters, digits, '.', '_' and '-', starting with a letter or digit, "
                "at most 100 characters.",
                code="job_name",
            )

    @property
    def concurrency_limit(self) -> int | None:
        """How many runs of this job may be assigned or running at once; None means any number."""
        if self.max_concurrent is not None:
            return self.max_concurrent
        return None if self.concurrency_policy is ConcurrencyPolicy.ALLOW else 1

    @property
    def spread_offset(self) -> timedelta:
        """How long after a tick its run is due: less than the spread, and the same for this job's name in every
        process and at every tick. The tick itself stays the nominal time."""
        digest = hashlib.sha256(self.name.encode()).digest()
        share = int.from_bytes(digest[:6], "big") / 2**48
        return timedelta(milliseconds=int(self.spread_seconds * 1000 * share))

    def next_due(self, after: datetime, count: int) -> list[datetime]:
        """When its next runs are due by the schedule; none without one."""
        if self.schedule is None:
            return []
        offset = self.spread_offset
        return [tick + offset for tick in upcoming(self.schedule, after - offset, count)]

    def key_for(self, arguments: Mapping[str, Any]) -> str | None:
        """The concurrency key of a run with these arguments; None if it has none."""
        if self.concurrency_key is None or self.concurrency_key not in arguments:
            return None
        value = arguments[self.concurrency_key]
        return value if isinstance(value, str) else jsontext.encode(value)


@dataclass(frozen=True, kw_only=True)
class Job:
    """A stored job. `planned_until` is how far its ticks have been planned as runs or skips."""

    id: int
    spec: JobSpec
    source: JobSource
    version: int
    planned_until: datetime
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None = None

    def plan_ticks(self, now: datetime, *, grace_seconds: float) -> TickPlan | None:
        """Which of its ticks since `planned_until` run and which are skipped; None without a schedule."""
        if self.spec.schedule is None:
            return None
        return plan_ticks(
            self.spec.schedule,
            planned_until=self.planned_until,
            now=max(now - self.spec.spread_offset, self.planned_until),
            misfire=self.spec.misfire,
            catchup_window=timedelta(seconds=self.spec.catchup_window_seconds),
            grace=timedelta(seconds=grace_seconds),
        )
