"""A job: handler, schedule and rules. `JobSpec` is before storing, `Job` after it."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple

from tsuzuki.model import jsontext
from tsuzuki.model.abilities import Needs, needs_of
from tsuzuki.model.errors import ConfigurationError
from tsuzuki.model.misfire import Misfire, SkippedTicks, TickPlan, due_range, plan_ticks
from tsuzuki.model.overlap import ConcurrencyPolicy
from tsuzuki.model.retry import RetryPolicy
from tsuzuki.model.run import NewRun
from tsuzuki.model.schedule import Schedule, UnreadableSchedule, upcoming
from tsuzuki.model.states import Reason, Trigger

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
                f"invalid job name {self.name!r}",
                hint="Use up to 100 letters, digits, '.', '_' and '-', starting with a letter or digit.",
                code="job_name",
            )

    @property
    def concurrency_limit(self) -> int | None:
        """How many runs of this job may be assigned or running at once; None means any number."""
        if self.max_concurrent is not None:
            return self.max_concurrent
        return None if self.concurrency_policy is ConcurrencyPolicy.ALLOW else 1

    @property
    def needs(self) -> Needs:
        """What a worker must have to execute it."""
        return needs_of(self.handler, self.options)

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


class JobEdition(NamedTuple):
    """Tells what a job says now from what it said before. The version alone does not: a database server that took over
    without the last change gives its number again."""

    version: int
    updated_at: datetime


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

    @property
    def edition(self) -> JobEdition:
        return JobEdition(self.version, self.updated_at)

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

    def is_replanned_by(self, spec: JobSpec | None) -> bool:
        """Whether its ticks so far are settled when it becomes `spec`, or is removed (None): another schedule, enabled
        or disabled."""
        return (
            spec is None or spec.schedule != self.spec.schedule or spec.enabled != self.spec.enabled
        )

    def skipped_by(self, spec: JobSpec | None, now: datetime) -> tuple[SkippedTicks, Reason] | None:
        """The due ticks that are never planned when it becomes `spec`, or is removed (None), and why. None if there
        are none, or this machine cannot read the schedule. Ticks that pass while a job is disabled are skipped when it
        is enabled."""
        schedule = self.spec.schedule
        will_be_enabled = spec is not None and spec.enabled
        if schedule is None or isinstance(schedule, UnreadableSchedule):
            return None
        if not (self.spec.enabled or will_be_enabled):
            return None
        until = now - self.spec.spread_offset
        ticks = due_range(schedule, planned_until=self.planned_until, until=until)
        if ticks is None:
            return None
        if spec is None:
            return ticks, Reason.JOB_DELETED
        is_switched = not (self.spec.enabled and spec.enabled)
        return ticks, Reason.JOB_DISABLED if is_switched else Reason.SCHEDULE_CHANGED

    def replanned_until(self, spec: JobSpec, now: datetime) -> datetime:
        """How far its ticks are settled when it becomes `spec`: a tick that is due later, because of the spread, is
        not settled yet."""
        return now - min(self.spec.spread_offset, spec.spread_offset)

    def run_for(
        self, tick: datetime, *, covers_ticks: int = 1, covers_until: datetime | None = None
    ) -> NewRun:
        """The run of a tick."""
        return NewRun(
            job_definition_id=self.id,
            trigger=Trigger.TIME,
            scheduled_for=tick,
            arguments=self.spec.arguments,
            priority=self.spec.priority,
            concurrency_key=self.spec.key_for(self.spec.arguments),
            covers_ticks=covers_ticks,
            covers_until=covers_until,
        )

    def record_of(self, ticks: SkippedTicks) -> NewRun:
        """The run that records skipped ticks: it is canceled in the transaction that creates it."""
        return self.run_for(ticks.first, covers_ticks=ticks.count, covers_until=ticks.last)
