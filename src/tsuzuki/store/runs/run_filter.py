"""A filter of runs as conditions of a WHERE."""

from collections.abc import Collection, Iterator
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Text,
    and_,
    case,
    cast,
    exists,
    false,
    func,
    literal,
    literal_column,
    not_,
    or_,
    select,
)

from tsuzuki.model.run_filter import RunFilter
from tsuzuki.model.states import SKIP_REASONS, Outcome, RunState
from tsuzuki.store.runs.states import in_indexed_state
from tsuzuki.store.schema.history_tables import run_failures
from tsuzuki.store.schema.tables import job_definitions, job_runs

_RETRY = job_runs.alias("retry")
_IS_RETRIED = exists(
    select(_RETRY.c.id).where(
        _RETRY.c.idempotency_key == literal("retry:") + cast(job_runs.c.id, Text)
    )
)


def conditions(wanted: RunFilter) -> Iterator[ColumnElement[bool]]:
    """Over runs joined with their jobs."""
    if wanted.is_empty:
        yield false()
    name = job_definitions.c.name
    if wanted.job_name is not None:
        yield name == wanted.job_name
    yield from _in_sets(name, wanted.job_names, wanted.excluded_job_names)
    yield from conditions_of_runs(wanted)
    if wanted.before_id is not None:
        yield job_runs.c.id < wanted.before_id


def covered(wanted: RunFilter, *, up_to_id: int) -> ColumnElement[bool]:
    """Whether the filter matches a run that is not newer; never NULL. Over runs alone."""
    name = job_definitions.c.name
    named = list(_in_sets(name, wanted.job_names, wanted.excluded_job_names))
    if wanted.job_name is not None:
        named.append(name == wanted.job_name)
    of_job = job_runs.c.job_definition_id.in_(select(job_definitions.c.id).where(*named))
    is_in = and_(job_runs.c.id <= up_to_id, of_job, *conditions_of_runs(wanted))
    return case((is_in, literal_column("1")), else_=literal_column("0")) == literal_column("1")


def conditions_of_runs(
    wanted: RunFilter, *, without: Collection[str] = ()
) -> Iterator[ColumnElement[bool]]:
    """Over runs alone: neither what it says of jobs nor the page. `without` those of these names."""
    if wanted.wanted_states and "states" not in without:
        yield in_indexed_state(*sorted(wanted.wanted_states))
    yield from _canceled_or_skipped(wanted.wanted_outcomes)
    for name, column in _EQUAL.items():
        value = getattr(wanted, name)
        if value is not None and name not in without:
            yield column == value
    for name, column in _SETS.items():
        among = () if name in without else getattr(wanted, name)
        yield from _in_sets(column, among, getattr(wanted, f"excluded_{name}"))
    yield from _times(wanted)
    if wanted.failure_group is not None and "failure_group" not in without:
        yield in_failure_group(wanted.failure_group)
    if wanted.search is not None:
        yield _contains(wanted.search)
    if wanted.is_retried is not None:
        yield _IS_RETRIED if wanted.is_retried else not_(_IS_RETRIED)


_EQUAL: dict[str, ColumnElement[Any]] = {
    "worker_id": job_runs.c.assigned_worker_id,
    "reason": job_runs.c.reason,
    "concurrency_key": job_runs.c.concurrency_key,
    "event_id": job_runs.c.event_id,
    "retry_of": job_runs.c.retry_of,
    "origin_id": job_runs.c.origin_id,
}
_SETS: dict[str, ColumnElement[Any]] = {
    "worker_ids": job_runs.c.assigned_worker_id,
    "reasons": job_runs.c.reason,
    "triggers": job_runs.c.trigger,
}


def _canceled_or_skipped(outcomes: frozenset[Outcome]) -> Iterator[ColumnElement[bool]]:
    """Tells the two outcomes of a CANCELED run apart, if only one of them is wanted."""
    among = outcomes & {Outcome.CANCELED, Outcome.SKIPPED}
    if len(among) == 1:
        is_skipped = job_runs.c.reason.in_(sorted(SKIP_REASONS))
        of_wanted = is_skipped if Outcome.SKIPPED in among else not_(is_skipped)
        yield or_(job_runs.c.state != RunState.CANCELED.value, of_wanted)


def _in_sets(
    column: ColumnElement[Any], among: Collection[str], excluded: Collection[str]
) -> Iterator[ColumnElement[bool]]:
    if among:
        yield column.in_(sorted(among))
    if excluded:
        yield or_(column.is_(None), column.not_in(sorted(excluded)))


def _times(wanted: RunFilter) -> Iterator[ColumnElement[bool]]:
    if wanted.created_from is not None:
        yield job_runs.c.created_at >= wanted.created_from
    if wanted.created_until is not None:
        yield job_runs.c.created_at < wanted.created_until
    if wanted.finished_from is not None:
        yield job_runs.c.finished_at >= wanted.finished_from
    if wanted.finished_until is not None:
        yield job_runs.c.finished_at < wanted.finished_until


def _contains(text: str) -> ColumnElement[bool]:
    of_job = select(job_definitions.c.id).where(
        job_definitions.c.name.icontains(text, autoescape=True)
    )
    return or_(
        job_runs.c.job_definition_id.in_(of_job),
        func.coalesce(job_runs.c.error, "").icontains(text, autoescape=True),
        func.coalesce(job_runs.c.concurrency_key, "").icontains(text, autoescape=True),
    )


def in_failure_group(group_id: str) -> ColumnElement[bool]:
    failed = select(run_failures.c.run_id).where(run_failures.c.group_id == group_id)
    return job_runs.c.id.in_(failed)
