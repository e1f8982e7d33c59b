"""A spread: a run is due at a fixed offset after its tick, and the tick keeps its identity."""

from datetime import timedelta

import pytest

from support.factories import spec
from support.moving_clock import MovingClock
from support.planning import (
    ALLOW,
    HOUR,
    HOURLY,
    a_planner,
    at,
    change_job,
    created,
    job_of,
    scheduled,
)
from tsuzuki.model.misfire import Misfire
from tsuzuki.model.states import RunState
from tsuzuki.store.leadership import Term
from tsuzuki.store.sql.database import Database

pytestmark = pytest.mark.usefixtures("history_is_valid")

SPREAD = 600.0
OFFSET_OF_NIGHTLY = 4.949
"""Of thirty seconds: a number that must not change from version to version."""


def test_a_run_is_created_at_its_offset_with_the_nominal_time(
    database: Database, clock: MovingClock, term: Term
) -> None:
    job_id = scheduled(database, spread_seconds=SPREAD)
    offset = job_of(database, job_id).spec.spread_offset
    assert timedelta() < offset < timedelta(seconds=SPREAD)
    planner = a_planner(database)
    assert planner.tick(term).next_at == at(1) + offset
    clock.advance(HOUR + offset.total_seconds() - 0.001)
    assert planner.tick(term).created == 0
    clock.advance(0.001)
    assert planner.tick(term).next_at == at(2) + offset
    assert created(database) == [(at(1), RunState.PENDING, None)]


@pytest.mark.parametrize(("before", "after"), [(0.0, SPREAD), (SPREAD, 0.0), (SPREAD, 2 * SPREAD)])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0, 1.5, 2.5])
def test_a_changed_spread_runs_every_tick_once(
    database: Database, clock: MovingClock, term: Term, before: float, after: float, share: float
) -> None:
    """The change falls before, into and after the time between a tick and its moment."""
    rules = {"schedule": HOURLY, "concurrency_policy": ALLOW, "misfire": Misfire.ALL}
    job_id = scheduled(database, **{**rules, "spread_seconds": before})
    offset = spec(spread_seconds=SPREAD).spread_offset.total_seconds()
    planner = a_planner(database)
    planner.tick(term)
    clock.advance(HOUR + share * offset)
    planner.tick(term)
    change_job(database, job_id, spec(**rules, spread_seconds=after))
    planner.tick(term)
    clock.advance(HOUR)
    planner.tick(term)
    clock.advance(HOUR)
    planner.tick(term)
    ticks = [tick for tick, _, _ in created(database)]
    assert len(ticks) == len(set(ticks))
    assert ticks[:2] == [at(1), at(2)]


def test_being_late_counts_from_the_moment_at_which_a_run_is_due(
    database: Database, clock: MovingClock, term: Term
) -> None:
    scheduled(database, spread_seconds=SPREAD, misfire=Misfire.SKIP)
    planner = a_planner(database)
    planner.tick(term)
    offset = spec(spread_seconds=SPREAD).spread_offset.total_seconds()
    clock.advance(HOUR + offset)
    assert planner.tick(term).created == 1


def test_the_offset_is_of_the_name_and_the_same_in_every_process() -> None:
    jobs = [spec(f"job-{number}", spread_seconds=30) for number in range(200)]
    offsets = [job.spread_offset.total_seconds() for job in jobs]
    assert all(0 <= offset < 30 for offset in offsets)
    assert len(set(offsets)) > 190
    assert [sum(offset // 10 == third for offset in offsets) > 40 for third in range(3)] == [
        True
    ] * 3
    assert spec("nightly", spread_seconds=30).spread_offset == timedelta(seconds=OFFSET_OF_NIGHTLY)
    assert spec("nightly").spread_offset == timedelta()
