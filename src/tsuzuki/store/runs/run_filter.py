"""Which runs a list or a count is about: every condition holds, and what is excluded is left out."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, or_

from tsuzuki.model.states import Reason, RunState, Trigger
from tsuzuki.store.runs.states import HELD_STATES, in_indexed_state
from tsuzuki.store.schema.tables import job_definitions, job_runs


@dataclass(frozen=True, kw_only=True)
class RunFilter:
    """Which runs to list, newest first. `before_id` continues a page. An empty set means any."""

    job_name: str | None = None
    states: frozenset[RunState] = frozenset()
    worker_id: str | None = None
    reason: Reason | None = None
    before_id: int | None = None
    limit: int = 50
    job_names: frozenset[str] = frozenset()
    excluded_job_names: frozenset[str] = frozenset()
    excluded_states: frozenset[RunState] = frozenset()
    worker_ids: frozenset[str] = frozenset()
    excluded_worker_ids: frozenset[str] = frozenset()
    reasons: frozenset[Reason] = frozenset()
    excluded_reasons: frozenset[Reason] = frozenset()
    triggers: frozenset[Trigger] = frozenset()
    excluded_triggers: frozenset[Trigger] = frozenset()
    concurrency_key: str | None = None
    event_id: int | None = None
    retry_of: int | None = None
    origin_id: int | None = None
    created_from: datetime | None = None
    created_until: datetime | None = None
    finished_from: datetime | None = None
    finished_until: datetime | None = None
    """From a time on, and until just before one."""

    @property
    def wanted_states(self) -> frozenset[RunState]:
        """Empty: any."""
        if not self.excluded_states:
            return self.states
        return (self.states or frozenset(RunState)) - self.excluded_states

    @property
    def is_held_only(self) -> bool:
        return bool(self.wanted_states) and self.wanted_states <= set(HELD_STATES)

    @property
    def is_empty(self) -> bool:
        """No run can be in it: every state is excluded."""
        return bool(self.excluded_states) and not self.wanted_states

    def conditions(self) -> Iterator[ColumnElement[bool]]:
        """For a WHERE over runs joined with their jobs."""
        if self.wanted_states:
            yield in_indexed_state(*sorted(self.wanted_states))
        for column, wanted in self._equal().items():
            if wanted is not None:
                yield column == wanted
        for column, wanted, excluded in self._sets():
            if wanted:
                yield column.in_(sorted(wanted))
            if excluded:
                yield or_(column.is_(None), column.not_in(sorted(excluded)))
        yield from self._times()
        if self.before_id is not None:
            yield job_runs.c.id < self.before_id

    def _equal(self) -> dict[ColumnElement[Any], object]:
        return {
            job_definitions.c.name: self.job_name,
            job_runs.c.assigned_worker_id: self.worker_id,
            job_runs.c.reason: self.reason,
            job_runs.c.concurrency_key: self.concurrency_key,
            job_runs.c.event_id: self.event_id,
            job_runs.c.retry_of: self.retry_of,
            job_runs.c.origin_id: self.origin_id,
        }

    def _sets(self) -> list[tuple[ColumnElement[Any], Collection[str], Collection[str]]]:
        return [
            (job_definitions.c.name, self.job_names, self.excluded_job_names),
            (job_runs.c.assigned_worker_id, self.worker_ids, self.excluded_worker_ids),
            (job_runs.c.reason, self.reasons, self.excluded_reasons),
            (job_runs.c.trigger, self.triggers, self.excluded_triggers),
        ]

    def _times(self) -> Iterator[ColumnElement[bool]]:
        if self.created_from is not None:
            yield job_runs.c.created_at >= self.created_from
        if self.created_until is not None:
            yield job_runs.c.created_at < self.created_until
        if self.finished_from is not None:
            yield job_runs.c.finished_at >= self.finished_from
        if self.finished_until is not None:
            yield job_runs.c.finished_at < self.finished_until
