"""Searches runs by a filter, newest first, in bounded time however many runs there are.

A search goes along indexes that have runs in the order of their ids (`run_paths`), and looks at a bounded number of
rows that the index leads to but the rest of the filter may refuse. If that bound ends it, it says where: the next call
continues there, so that every run is found exactly once. A count that was ended is a lower bound. A page and its
count are one walk: what the page has looked at is not read again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, select

from tsuzuki.model.run import Run
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.model.states import RunState
from tsuzuki.store.runs import runs
from tsuzuki.store.runs.id_bounds import first_since, oldest_and_newest
from tsuzuki.store.runs.run_filter import conditions_of_runs
from tsuzuki.store.runs.run_paths import Path, paths_of
from tsuzuki.store.runs.states import in_states
from tsuzuki.store.schema.tables import job_definitions, job_runs
from tsuzuki.store.sql.plan_hints import guard
from tsuzuki.store.sql.prepared import execute
from tsuzuki.store.sql.value_list import in_list

LOOKED_MAX = 20_000
"""Rows of the table that one search looks at, in their order. On PostgreSQL a row that has just moved on is several
versions on several pages: beside an engine that works this takes some 20 ms."""

LOOKED_UP_MAX = 5_000
"""Rows that one search looks up from an index, where each may be elsewhere in the table."""

DISORDER_MAX = 20_000
"""By how many runs the order of ids may differ from the order of creation: processes store at the same time, and
their clocks differ a little."""


class FoundRuns(NamedTuple):
    """Runs, newest first. With `continue_before` the search was ended early: go on with runs before this id."""

    runs: list[Run]
    continue_before: int | None


class RunCount(NamedTuple):
    """How many runs match; not `exact`: at least so many."""

    value: int
    exact: bool


@dataclass(frozen=True, kw_only=True)
class _Search:
    """A filter with its jobs as ids, and the ids between which runs can match: from `low`, and below `high`."""

    wanted: RunFilter
    refusing: tuple[ColumnElement[bool], ...]
    """Conditions that no index of the paths stands for."""
    paths: Sequence[Path]
    """What is live first: a run that ends between two statements is then found twice, and not missed."""
    low: int
    high: int
    looked_from: int
    """From where on rows are counted as looked at; what is above differs only by the order of ids."""


class _Walk(NamedTuple):
    """How far a search went along a path, and what it found, newest first."""

    path: Path
    low: int
    ids: list[int]


def search(connection: Connection, wanted: RunFilter) -> FoundRuns:
    """Up to `wanted.limit` runs."""
    asked = _prepare(connection, wanted)
    return _found(connection, asked, _walks(connection, asked))


def count(connection: Connection, wanted: RunFilter, *, at_most: int) -> RunCount:
    """Counts no further than `at_most`."""
    asked = _prepare(connection, wanted)
    walks = [_Walk(path, _end_of_look(connection, asked, path), []) for path in asked.paths]
    return _counted(connection, asked, walks, at_most=at_most, limit=0)


def search_and_count(
    connection: Connection, wanted: RunFilter, *, at_most: int
) -> tuple[FoundRuns, RunCount]:
    """The first page, and how many runs there are in all."""
    asked = _prepare(connection, wanted)
    walks = _walks(connection, asked)
    counted = _counted(connection, asked, walks, at_most=at_most, limit=wanted.limit)
    return _found(connection, asked, walks), counted


def _walks(connection: Connection, asked: _Search) -> list[_Walk]:
    walks = []
    for path in asked.paths:
        low = _end_of_look(connection, asked, path)
        statement = path.ids(asked.refusing, low=low, high=asked.high, limit=asked.wanted.limit)
        walks.append(_Walk(path, low, list(connection.execute(statement).scalars())))
    return walks


def _found(connection: Connection, asked: _Search, walks: Sequence[_Walk]) -> FoundRuns:
    wanted, reached = asked.wanted, asked.low
    for _, low, ids in walks:
        # What is below its last one, or below its bound, is unknown on this path: so it is on all.
        reached = max(reached, ids[-1] if len(ids) == wanted.limit else low)
    found = {run_id for walk in walks for run_id in walk.ids if run_id >= reached}
    known = sorted(found, reverse=True)[: wanted.limit]
    states = wanted.wanted_states or frozenset(RunState)
    # Meanwhile a run may have moved on, or have been pruned: it is left out, and the search is not over.
    found_runs = [run for run in runs.get_many(connection, known) if run.state in states]
    if len(known) < wanted.limit:
        return FoundRuns(found_runs[::-1], reached if reached > asked.low else None)
    return FoundRuns(found_runs[::-1], known[-1] if len(found_runs) < wanted.limit else None)


def _counted(
    connection: Connection, asked: _Search, walks: Sequence[_Walk], *, at_most: int, limit: int
) -> RunCount:
    """What the walks found, up to `limit` each, and what is below."""
    total = sum(len(walk.ids) for walk in walks)
    for path, low, ids in walks:
        left = at_most + 1 - total
        if left > 0 and len(ids) == limit:
            high = ids[-1] if ids else asked.high
            statement = path.count(asked.refusing, low=low, high=high, at_most=left)
            total += int(connection.execute(statement).scalar_one())
    is_whole = all(walk.low == asked.low for walk in walks)
    return RunCount(min(total, at_most), is_whole and total <= at_most)


def _prepare(connection: Connection, wanted: RunFilter) -> _Search:
    names = wanted.job_names
    if wanted.job_name is not None:
        names = frozenset({wanted.job_name} & (names or {wanted.job_name}))
    job_ids = _job_ids(connection, names)
    has_jobs = wanted.job_name is not None or bool(wanted.job_names)
    if wanted.is_empty or (has_jobs and not job_ids):
        return _Search(wanted=wanted, refusing=(), paths=(), low=0, high=0, looked_from=0)
    excluded = _job_ids(connection, wanted.excluded_job_names)
    low, high, looked_from = _bounds(connection, wanted)
    choice = paths_of(connection, wanted, job_ids, low=low, high=high)
    states = () if "states" in choice.stands_for else tuple(sorted(wanted.wanted_states))
    refusing = (
        *([in_states(states)] if states else ()),
        *conditions_of_runs(wanted, without={"states", *choice.stands_for}),
        *(() if choice.stands_for_jobs or not job_ids else [_of_jobs(job_ids)]),
        *([~_of_jobs(excluded)] if excluded else ()),
    )
    # Out of the planner's reach: the path must be gone along, not one that a refusing condition suggests.
    guarded = tuple(guard(condition) for condition in refusing)
    return _Search(
        wanted=wanted,
        refusing=guarded,
        paths=sorted(choice.paths, key=lambda path: not path.is_sorted),
        low=low,
        high=high,
        looked_from=looked_from,
    )


def _of_jobs(job_ids: frozenset[int]) -> ColumnElement[bool]:
    return job_runs.c.job_definition_id.in_(sorted(job_ids))


def _job_ids(connection: Connection, names: frozenset[str]) -> frozenset[int]:
    """The jobs of these names, removed ones too."""
    if not names:
        return frozenset()
    return frozenset(execute(connection, _JOB_IDS, {"names": sorted(names)}).scalars())


_JOB_IDS = select(job_definitions.c.id).where(in_list(job_definitions.c.name, "names"))


def _end_of_look(connection: Connection, asked: _Search, path: Path) -> int:
    """Down to which id the search may look along this path."""
    if path.is_sorted or not asked.refusing:
        return asked.low
    if path.is_table:
        return max(asked.low, asked.looked_from - LOOKED_MAX)
    statement = path.nth_id(LOOKED_UP_MAX, low=asked.low, high=asked.high)
    nth: int | None = connection.execute(statement).scalar_one_or_none()
    return asked.low if nth is None else nth


def _bounds(connection: Connection, wanted: RunFilter) -> tuple[int, int, int]:
    """From which id, below which, and from which on rows are counted as looked at."""
    ends = oldest_and_newest(connection)
    if ends is None:
        return 0, 0, 0
    low, high = ends[0], ends[1] + 1
    looked_from = high
    # A run that finished before a time was created before it.
    until = [end for end in (wanted.created_until, wanted.finished_until) if end is not None]
    if until:
        looked_from = first_since(connection, min(until), low, high)
        high = min(high, looked_from + DISORDER_MAX)
    if wanted.created_from is not None:
        low = max(low, first_since(connection, wanted.created_from, low, high) - DISORDER_MAX)
    if wanted.before_id is not None:
        high = min(high, wanted.before_id)
    return low, high, min(looked_from, high)
