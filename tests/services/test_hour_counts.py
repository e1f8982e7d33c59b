"""Counts that are kept in memory stay right, whatever happens while they are read."""

from datetime import datetime

import pytest

from support.factories import run_in_state
from support.moving_clock import MovingClock
from tsuzuki.model.errors import Unreachable
from tsuzuki.model.states import Outcome, RunState
from tsuzuki.services.statistics import RunStatistics
from tsuzuki.store import rollups
from tsuzuki.store.leadership import Term
from tsuzuki.store.rollups import HourCount
from tsuzuki.store.sql.database import Connection, Database


def by_hour(statistics: RunStatistics) -> list[dict[Outcome, int]]:
    return [dict(hour.outcomes.runs) for hour in statistics.by_hour(hours=4)]


def test_an_hour_that_cannot_be_read_leaves_the_hours_before_it_counted_once(
    database: Database, term: Term, clock: MovingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        run_in_state(database, RunState.FAILED, term)
        clock.advance(3600)
    read = rollups.ended_between
    read_from: list[datetime] = []

    def break_off_once(connection: Connection, start: datetime, end: datetime) -> list[HourCount]:
        counts = read(connection, start, end)
        if any(counts):
            read_from.append(start)
            if len(read_from) == 2:
                raise Unreachable("the database restarts")
        return counts

    monkeypatch.setattr(rollups, "ended_between", break_off_once)
    statistics = RunStatistics(database=database)
    with pytest.raises(Unreachable):
        by_hour(statistics)
    assert len(read_from) == 2
    expected = [{Outcome.FAILED: 1}] * 3 + [{}]
    assert by_hour(statistics) == expected
    assert by_hour(statistics) == by_hour(RunStatistics(database=database)) == expected
