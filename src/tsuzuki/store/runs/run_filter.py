"""A filter of runs as conditions of a WHERE, over runs joined with their jobs."""

from collections.abc import Collection, Iterator
from typing import Any

from sqlalchemy import ColumnElement, Text, cast, exists, false, literal, not_, or_, select

from tsuzuki.model.run_filter import RunFilter
from tsuzuki.store.runs.states import in_indexed_state
from tsuzuki.store.schema.failure_tables import run_failures
from tsuzuki.store.schema.tables import job_definitions, job_runs

_RETRY = job_runs.alias("retry")
_IS_RETRIED = exists(
    select(_RETRY.c.id).where(
        _RETRY.c.idempotency_key == literal("retry:") + cast(job_runs.c.id, Text)
    )
)


def conditions(wanted: RunFilter) -> Iterator[ColumnElement[bool]]:
    if wanted.is_empty:
        yield false()
    if wanted.wanted_states:
        yield in_indexed_state(*sorted(wanted.wanted_states))
    for column, value in _equal(wanted).items():
        if value is not None:
            yield column == value
    for column, among, excluded in _sets(wanted):
        if among:
            yield column.in_(sorted(among))
        if excluded:
            yield or_(column.is_(None), column.not_in(sorted(excluded)))
    yield from _times(wanted)
    yield from _related(wanted)
    if wanted.before_id is not None:
        yield job_runs.c.id < wanted.before_id


def _equal(wanted: RunFilter) -> dict[ColumnElement[Any], object]:
    return {
        job_definitions.c.name: wanted.job_name,
        job_runs.c.assigned_worker_id: wanted.worker_id,
        job_runs.c.reason: wanted.reason,
        job_runs.c.concurrency_key: wanted.concurrency_key,
        job_runs.c.event_id: wanted.event_id,
        job_runs.c.retry_of: wanted.retry_of,
        job_runs.c.origin_id: wanted.origin_id,
    }


def _sets(wanted: RunFilter) -> list[tuple[ColumnElement[Any], Collection[str], Collection[str]]]:
    return [
        (job_definitions.c.name, wanted.job_names, wanted.excluded_job_names),
        (job_runs.c.assigned_worker_id, wanted.worker_ids, wanted.excluded_worker_ids),
        (job_runs.c.reason, wanted.reasons, wanted.excluded_reasons),
        (job_runs.c.trigger, wanted.triggers, wanted.excluded_triggers),
    ]


def _times(wanted: RunFilter) -> Iterator[ColumnElement[bool]]:
    if wanted.created_from is not None:
        yield job_runs.c.created_at >= wanted.created_from
    if wanted.created_until is not None:
        yield job_runs.c.created_at < wanted.created_until
    if wanted.finished_from is not None:
        yield job_runs.c.finished_at >= wanted.finished_from
    if wanted.finished_until is not None:
        yield job_runs.c.finished_at < wanted.finished_until


def _related(wanted: RunFilter) -> Iterator[ColumnElement[bool]]:
    if wanted.failure_group is not None:
        in_group = run_failures.c.group_id == wanted.failure_group
        yield job_runs.c.id.in_(select(run_failures.c.run_id).where(in_group))
    if wanted.is_retried is not None:
        yield _IS_RETRIED if wanted.is_retried else not_(_IS_RETRIED)
