"""Paths of a search of runs: the indexes that lead to candidates of a filter.

Three kinds, each with its candidates in the order of ids, newest first:

pair     an index on a column and the id: the ended runs of a job, of an unsuccessful state, of a reason, an event
sorted   a set that is small at this moment, such as what is live; it is read whole and sorted
table    the table itself

A pair is sorted as one, and on PostgreSQL compared as one (`plan_hints.pair_between`), so that no planner can prefer
another index, which would pass many rows of other values.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, func, select

from tsuzuki.model.run_filter import RunFilter
from tsuzuki.model.states import LIVE_STATES, SKIP_REASONS, Outcome, RunState
from tsuzuki.store.runs.indexed_states import BAD_STATES, HELD_STATES, WAITING_STATES
from tsuzuki.store.runs.run_filter import in_failure_group
from tsuzuki.store.runs.states import in_indexed_state
from tsuzuki.store.schema.history_tables import PAIRED_COLUMNS
from tsuzuki.store.schema.tables import job_runs
from tsuzuki.store.sql.plan_hints import pair_between

SORTED_MAX = 10_000
"""How many rows are sorted at most."""

COMPARED_MAX = 5_000
"""How far the candidates of paths are counted to compare them: a search looks no further along any of them."""

JOBS_MAX = 8
"""A filter of more jobs goes through the table: there is a path for each of a few."""

_BADLY_ENDED = in_indexed_state(*BAD_STATES)

Conditions = Sequence[ColumnElement[bool]]


@dataclass(frozen=True, kw_only=True)
class Path:
    """`where` is what its index stands for; with a `key` the index is on that column and the id."""

    where: tuple[ColumnElement[bool], ...] = ()
    key: ColumnElement[Any] | None = None
    value: Any = None
    is_sorted: bool = False
    is_table: bool = False

    def ids(self, refusing: Conditions, *, low: int, high: int, limit: int) -> Select[Any]:
        """The newest ids of its candidates between two ids that nothing refuses."""
        return self._between(low, high).where(*refusing).order_by(*self._order()).limit(limit)

    def count(self, refusing: Conditions, *, low: int, high: int, at_most: int) -> Select[Any]:
        counted = self._between(low, high).where(*refusing).limit(at_most).subquery()
        return select(func.count()).select_from(counted)

    def nth_id(self, number: int, *, low: int, high: int) -> Select[Any]:
        """The id of its nth candidate, from the newest; no row if it has fewer."""
        return self._between(low, high).order_by(*self._order()).offset(number - 1).limit(1)

    def _between(self, low: int, high: int) -> Select[Any]:
        chosen = select(job_runs.c.id).where(*self.where)
        if self.key is None:
            run_id = self._id()
            return chosen.where(run_id >= low, run_id < high)
        return chosen.where(pair_between(self.key, self.value, job_runs.c.id, low, high))

    def _order(self) -> list[ColumnElement[Any]]:
        return [*([] if self.key is None else [self.key.desc()]), self._id().desc()]

    def _id(self) -> ColumnElement[int]:
        """Of a set that is sorted with `+ 0`, which keeps the primary key from being used."""
        return job_runs.c.id + 0 if self.is_sorted else job_runs.c.id


class Choice(NamedTuple):
    """Paths that together lead to every run of a filter, and which of its conditions they stand for."""

    paths: Sequence[Path]
    stands_for: frozenset[str] = frozenset()
    stands_for_jobs: bool = False


_TABLE = Choice([Path(is_table=True)])
_IS_ENDED = job_runs.c.finished_at.is_not(None)
_IS_LIVE = job_runs.c.finished_at.is_(None)


@dataclass(frozen=True, kw_only=True)
class _Chooser:
    connection: Connection
    wanted: RunFilter
    job_ids: frozenset[int]
    low: int
    high: int
    states: frozenset[RunState] = field(default_factory=frozenset)

    def choices(self) -> Iterator[Choice]:
        """Each is complete. Those that lead to few candidates come first."""
        for name in PAIRED_COLUMNS:
            value = getattr(self.wanted, name)
            if value is not None:
                yield Choice([_pair(name, value)], frozenset({name}))
        if self.wanted.reasons:
            reasons = sorted(self.wanted.reasons)
            yield Choice([_pair("reason", one) for one in reasons], frozenset({"reasons"}))
        if self.wanted.outcomes == {Outcome.SKIPPED}:
            yield Choice([_pair("reason", one) for one in sorted(SKIP_REASONS)])
        if self.wanted.failure_group is not None:
            yield from self._by_failure_group(self.wanted.failure_group)
        if 0 < len(self.job_ids) <= JOBS_MAX:
            yield from self._by_job()
        if RunState.SUCCEEDED not in self.states:
            yield from self._by_state()

    def _by_failure_group(self, group_id: str) -> Iterator[Choice]:
        path = Path(where=(in_failure_group(group_id),), is_sorted=True)
        if _candidates(self, path, at_most=SORTED_MAX) <= SORTED_MAX:
            yield Choice([path], frozenset({"failure_group"}))

    def _by_job(self) -> Iterator[Choice]:
        paths: list[Path] = []
        for job_id in sorted(self.job_ids):
            job = job_runs.c.job_definition_id
            if self.states - LIVE_STATES:
                paths.append(Path(where=(_IS_ENDED,), key=job, value=job_id))
            if self.states & LIVE_STATES:
                live = self._live(job == job_id)
                if live is None:
                    return
                paths.append(live)
        yield Choice(paths, stands_for_jobs=True)

    def _by_state(self) -> Iterator[Choice]:
        paths = [
            Path(where=(_BADLY_ENDED,), key=job_runs.c.state, value=state)
            for state in sorted(self.states - LIVE_STATES)
        ]
        live = self.states & LIVE_STATES
        if live:
            path = self._live()
            if path is None:
                return
            paths.append(path)
        is_whole = live in (frozenset(), LIVE_STATES)
        yield Choice(paths, frozenset({"states"} if is_whole else ()))

    def _live(self, *of_job: ColumnElement[bool]) -> Path | None:
        """What is live, if that is not much now."""
        live = self.states & LIVE_STATES
        held, waiting = live <= set(HELD_STATES), live <= set(WAITING_STATES)
        indexed = in_indexed_state(*(HELD_STATES if held else WAITING_STATES))
        path = Path(where=(indexed if held or waiting else _IS_LIVE, *of_job), is_sorted=True)
        return path if _candidates(self, path, at_most=SORTED_MAX) <= SORTED_MAX else None


def _pair(name: str, value: object) -> Path:
    column = job_runs.c[name]
    return Path(where=(column.is_not(None),), key=column, value=value)


def _candidates(search: _Chooser, path: Path, *, at_most: int) -> int:
    """How many there are, up to one more than matters."""
    statement = path.count((), low=search.low, high=search.high, at_most=at_most + 1)
    return int(search.connection.execute(statement).scalar_one())


def paths_of(
    connection: Connection, wanted: RunFilter, job_ids: frozenset[int], *, low: int, high: int
) -> Choice:
    """The paths with the fewest candidates; through the table if no index leads to them."""
    states = wanted.wanted_states or frozenset(RunState)
    search = _Chooser(
        connection=connection, wanted=wanted, job_ids=job_ids, low=low, high=high, states=states
    )
    choices = list(search.choices())
    if len(choices) <= 1:
        return choices[0] if choices else _TABLE
    counts = [
        sum(_candidates(search, path, at_most=COMPARED_MAX) for path in choice.paths)
        for choice in choices
    ]
    return choices[counts.index(min(counts))]
