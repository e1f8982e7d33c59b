"""Jobs as shown to people: the definitions in the file and in the database, and whether they agree."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cached_property
from typing import Any, NamedTuple

from tsuzuki.model.job import Job, JobSource, JobSpec
from tsuzuki.model.schedule import UnreadableSchedule
from tsuzuki.model.sentence import CommandLine, Sentence
from tsuzuki.model.states import Outcome
from tsuzuki.store.rows import columns_of


class SyncState(StrEnum):
    """Whether the database holds what the file says."""

    APPLIED = "applied"
    """It does; or the job lives in the database only."""

    NOT_APPLIED = "not applied"
    """In the file, not yet in the database."""

    CHANGED = "changed"
    """Different in the file and in the database."""

    GONE = "removed from the file"
    """No longer in the file, still in the database."""

    REFUSED = "refused"
    """In the file and in the database, but of a kind that cannot be used now."""


class LastEnd(NamedTuple):
    """How the newest run of a job that has ended did so, and when."""

    run_id: int
    outcome: Outcome | None
    finished_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class JobView:
    """A job as people see it at a time. `spec` is what the file says, where it is in the file."""

    spec: JobSpec
    source: JobSource
    sync_state: SyncState
    job: Job | None
    now: datetime = field(compare=False)
    is_built_in: bool = False
    """A job of our own, such as the one that carries out bulk actions: lists leave it out unless asked for."""

    @cached_property
    def next_at(self) -> datetime | None:
        """When it is due next. Computed when it is asked for: of a long list few are shown."""
        if not self.spec.enabled or isinstance(self.spec.schedule, UnreadableSchedule):
            return None
        due = self.spec.next_due(self.now, 1)
        return due[0] if due else None

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def schedule_words(self) -> str:
        spec = self.spec
        words = [spec.schedule.describe()] if spec.schedule else []
        if spec.schedule and spec.spread_seconds:
            offset = timedelta(seconds=round(spec.spread_offset.total_seconds()))
            words = [f"{words[0]}, plus {offset} (spread)"]
        if spec.on_event:
            words.append(f"on event {spec.on_event}")
        return ", or ".join(words) or "manual"

    def why_idle(self) -> Sentence:
        """Why nothing of it is waiting or running."""
        if self.sync_state is SyncState.NOT_APPLIED:
            return Sentence(
                "Defined in the file, but not applied yet. Apply it with: %(command)s",
                command=CommandLine("tsuzuki job apply"),
            )
        if not self.spec.enabled:
            command = CommandLine(f"tsuzuki job enable {self.name}")
            return Sentence("Disabled. Enable it with: %(command)s", command=command)
        if self.next_at is not None:
            return Sentence("Next run: %(when)s.", when=self.next_at)
        return Sentence(
            "No runs are waiting or in progress. Schedule: %(schedule)s.",
            schedule=self._schedule_sentence(),
        )

    def _schedule_sentence(self) -> Sentence | str:
        """When it runs, as far as that can be said in other languages."""
        if self.spec.schedule:
            return self.schedule_words
        if self.spec.on_event:
            return Sentence("on event %(event)s", event=self.spec.on_event)
        return Sentence("manual")

    def definition(self) -> dict[str, Any]:
        """What was said about the job, without what follows from it."""
        return columns_of(self.spec)

    def as_dict(self) -> dict[str, Any]:
        return {
            **self.definition(),
            "id": self.job.id if self.job else None,
            "source": self.source,
            "sync_state": self.sync_state,
            "schedule_words": self.schedule_words,
            "next_at": self.next_at,
        }


def views_of(
    in_file: Iterable[JobSpec],
    stored: Iterable[Job],
    *,
    refused: Collection[str] = (),
    built_in: Collection[str] = (),
    now: datetime,
) -> list[JobView]:
    """Every job of the file and of the database, by name. `refused` are jobs of the file whose kind is; `built_in` are
    the names of our own."""
    specs = {spec.name: spec for spec in in_file}
    rows = {job.spec.name: job for job in stored}
    views = [view_of(specs.get(name), rows.get(name), now=now) for name in sorted({*specs, *rows})]
    return [_marked(view, refused, built_in) for view in views]


def _marked(view: JobView, refused: Collection[str], built_in: Collection[str]) -> JobView:
    if view.source is JobSource.DATABASE:
        return replace(view, is_built_in=True) if view.name in built_in else view
    return replace(view, sync_state=SyncState.REFUSED) if view.name in refused else view


def view_of(in_file: JobSpec | None, stored: Job | None, *, now: datetime) -> JobView:
    spec = in_file or (stored.spec if stored else None)
    if spec is None:
        raise ValueError("a job is in the file or in the database")
    source = JobSource.FILE if in_file else (stored.source if stored else JobSource.FILE)
    if stored and stored.source is JobSource.DATABASE:
        source, spec = JobSource.DATABASE, stored.spec
    return JobView(
        spec=spec,
        source=source,
        sync_state=_sync_state(in_file, stored),
        job=stored,
        now=now,
    )


def _sync_state(in_file: JobSpec | None, stored: Job | None) -> SyncState:
    if stored is None:
        return SyncState.NOT_APPLIED
    if stored.source is JobSource.DATABASE:
        return SyncState.APPLIED
    if in_file is None:
        return SyncState.GONE
    return SyncState.APPLIED if in_file == stored.spec else SyncState.CHANGED
