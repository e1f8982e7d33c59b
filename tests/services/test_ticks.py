"""Verification of ticks: whole across edits and pauses, and every tick that vanished is named."""

from dataclasses import replace
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest
from sqlalchemy import delete, text

from support.factories import add_job, spec, take_lead
from support.moving_clock import NOON, MovingClock
from support.planning import (
    ALLOW,
    HOURLY,
    MINUTELY,
    a_planner,
    all_runs,
    at,
    change_job,
    end_all,
    job_of,
    scheduled,
)
from tsuzuki.model.job import JobSpec
from tsuzuki.model.misfire import Misfire
from tsuzuki.model.schedule import parse_schedule
from tsuzuki.model.settings import EngineSettings
from tsuzuki.model.states import RunState
from tsuzuki.model.verification import NAMED_MAX, Fault, FaultKind, Verified
from tsuzuki.services import job_changes
from tsuzuki.services.ticks import Ticks
from tsuzuki.store import settings
from tsuzuki.store.leadership import Term
from tsuzuki.store.runs import ticks
from tsuzuki.store.schema.tables import job_runs
from tsuzuki.store.sql.database import Database

CRON = parse_schedule({"cron": "*/5 * * * *", "timezone": "Europe/Berlin"})
MINUTE = 60.0
HOUR = 3600.0


@pytest.fixture
def term(database: Database) -> Term:
    return take_lead(database, lease_seconds=10_000_000.0)


def verified(
    database: Database, *, since: datetime = NOON, until: datetime | None = None
) -> list[Verified]:
    return [
        *Ticks(database=database).verify(since=since, until=until, advance=lambda _compared: None)
    ]


def only(found: list[Verified]) -> Verified:
    (one,) = found
    return one


def plan_all(database: Database, term: Term) -> None:
    planner = a_planner(database)
    while planner.tick(term).more:
        pass


def vanish(database: Database, run_id: int) -> None:
    """Delete a run by hand; the database refuses one that has not ended."""
    end_all(database)
    with database.write() as connection:
        connection.execute(delete(job_runs).where(job_runs.c.id == run_id))


def missing(moment: datetime) -> Fault:
    name = f"the tick of {moment:%Y-%m-%d %H:%M:%S} UTC has neither a run nor a skip"
    return Fault(kind=FaultKind.MISSING, name=name)


def test_a_job_without_a_schedule_has_no_ticks_to_verify(database: Database) -> None:
    add_job(database, spec(schedule=None))
    assert verified(database) == []


def test_every_tick_that_became_a_run_or_a_skip_is_compared(
    database: Database, clock: MovingClock, term: Term
) -> None:
    job_id = scheduled(database)
    for _ in range(5):
        clock.advance(HOUR)
        plan_all(database, term)
    one = only(verified(database))
    assert (one.subject, one.is_ok, one.compared) == (job_of(database, job_id).spec.name, True, 5)


def test_a_run_and_a_recorded_skip_that_vanished_are_both_named(
    database: Database, clock: MovingClock, term: Term
) -> None:
    scheduled(database)
    for _ in range(6):
        clock.advance(HOUR)
        plan_all(database, term)  # the first becomes a run, and the others skips: it is still live
    runs = all_runs(database)
    gone = [runs[0], runs[3]]
    assert [run.state for run in gone] == [RunState.PENDING, RunState.CANCELED]
    for run in gone:
        vanish(database, run.id)
    one = only(verified(database))
    assert one.named == (missing(at(1)), missing(at(4)))
    assert (one.compared, one.faults, one.counts) == (6, 2, {FaultKind.MISSING: 2})


def test_a_skip_that_covers_a_range_is_missed_as_every_tick_of_it(
    database: Database, clock: MovingClock, term: Term
) -> None:
    scheduled(database, MINUTELY)
    clock.advance(100 * MINUTE)
    plan_all(database, term)
    assert only(verified(database)).compared == 100
    covering = next(run for run in all_runs(database) if run.covers_ticks == 99)
    vanish(database, covering.id)
    one = only(verified(database))
    assert (one.faults, one.compared, len(one.named)) == (99, 100, NAMED_MAX)
    assert one.named[0] == missing(NOON + timedelta(minutes=1))


def test_a_range_that_began_before_the_first_date_counts(
    database: Database, clock: MovingClock, term: Term
) -> None:
    scheduled(database, MINUTELY)
    clock.advance(100 * MINUTE)
    plan_all(database, term)
    one = only(verified(database, since=NOON + timedelta(minutes=50)))
    assert one.is_ok
    assert one.compared == 2  # what is left of the range, and the newest tick


def test_dates_bound_what_is_verified(database: Database, clock: MovingClock, term: Term) -> None:
    scheduled(database)
    for _ in range(6):
        clock.advance(HOUR)
        plan_all(database, term)
    vanish(database, all_runs(database)[0].id)
    assert only(verified(database, since=at(2), until=at(5))).compared == 4
    assert only(verified(database, since=at(2), until=at(5))).is_ok
    assert only(verified(database, since=at(0.5), until=at(5))).named == (missing(at(1)),)


def test_ticks_that_are_not_planned_yet_are_not_missing(
    database: Database, clock: MovingClock, term: Term
) -> None:
    scheduled(database)
    clock.advance(HOUR)
    plan_all(database, term)
    clock.advance(10 * HOUR)
    assert only(verified(database)).compared == 1


def test_runs_that_the_retention_deleted_are_not_missing(
    database: Database, clock: MovingClock, term: Term
) -> None:
    scheduled(database)
    for _ in range(72):
        clock.advance(HOUR)
        plan_all(database, term)
    with database.write() as connection:
        settings.put(connection, key="run_retention_days", value=1, actor="ada")
    vanish(database, all_runs(database)[0].id)
    one = only(verified(database))
    assert one.is_ok
    assert one.compared == 25


def test_the_skip_of_a_pause_is_missed_when_it_vanished(
    database: Database, clock: MovingClock, term: Term
) -> None:
    job_id = scheduled(database)
    on = job_of(database, job_id).spec
    clock.advance(1.5 * HOUR)
    plan_all(database, term)
    change_job(database, job_id, replace(on, enabled=False))
    clock.advance(3 * HOUR)
    assert only(verified(database)).compared == 1  # a pause is settled when it is over
    change_job(database, job_id, on)
    assert only(verified(database)).compared == 4
    vanish(database, all_runs(database)[-1].id)
    assert only(verified(database)).named == tuple(missing(at(hours)) for hours in (2, 3, 4))


def test_ticks_of_a_former_schedule_are_verified_by_that_schedule(
    database: Database, clock: MovingClock, term: Term
) -> None:
    job_id = scheduled(database)
    for _ in range(3):
        clock.advance(HOUR)
        plan_all(database, term)
    clock.advance(0.5 * HOUR)
    changed = replace(job_of(database, job_id).spec, schedule=parse_schedule("every 1d"))
    change_job(database, job_id, changed)
    clock.advance(24 * HOUR)
    plan_all(database, term)
    assert only(verified(database)).compared == 4
    vanish(database, all_runs(database)[1].id)
    assert only(verified(database)).named == (missing(at(2)),)


def test_a_job_that_was_removed_owes_nothing_for_the_time_it_was_gone(
    database: Database, clock: MovingClock, term: Term
) -> None:
    with database.write() as connection:
        job_changes.define(connection, [spec(name="report", schedule=HOURLY)], actor="ada")
    clock.advance(2.5 * HOUR)
    plan_all(database, term)
    with database.write() as connection:
        job_changes.remove(connection, "report", actor="ada")
    clock.advance(10 * HOUR)
    with database.write() as connection:
        job_changes.define(connection, [spec(name="report", schedule=HOURLY)], actor="ada")
    clock.advance(2 * HOUR)
    plan_all(database, term)
    one = only(verified(database))
    assert (one.is_ok, one.compared) == (True, 4)


def test_a_tick_with_two_runs_is_named(database: Database, clock: MovingClock, term: Term) -> None:
    scheduled(database)
    for _ in range(3):
        clock.advance(HOUR)
        plan_all(database, term)
    doubled = all_runs(database)[0].id
    with database.write() as connection:
        connection.execute(text("DROP INDEX tsuzuki_uq_job_runs_job_definition_id_scheduled_for"))
        columns = [c.name for c in job_runs.c if c.name not in ("id", "idempotency_key")]
        names = ", ".join(f'"{name}"' for name in columns)
        connection.execute(
            text(
                f"INSERT INTO tsuzuki_job_runs ({names}) SELECT {names} FROM tsuzuki_job_runs WHERE id = {doubled}"
            )
        )
    one = only(verified(database))
    assert one.counts == {FaultKind.REPEATED: 1}
    assert one.named[0].name == "the tick of 2026-03-01 13:00:00 UTC has two runs"


def test_it_reads_page_by_page_and_reports_how_far_it_is(
    database: Database, clock: MovingClock, term: Term, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduled(database, MINUTELY, concurrency_policy=ALLOW, misfire=Misfire.ALL)
    clock.advance(50 * MINUTE)
    plan_all(database, term)
    vanish(database, all_runs(database)[30].id)
    monkeypatch.setattr(ticks, "PAGE", 7)
    monkeypatch.setattr("tsuzuki.services.ticks.ADVANCE_TICKS", 10)
    told: list[int] = []
    one = only([*Ticks(database=database).verify(since=NOON, until=None, advance=told.append)])
    assert (one.compared, one.faults, sum(told), len(told)) == (50, 1, 50, 6)


@pytest.mark.parametrize("seed", range(6))
def test_nothing_is_missing_across_random_changes_and_each_vanished_run_is(
    database: Database, clock: MovingClock, term: Term, seed: int
) -> None:
    random = Random(seed)
    now: JobSpec = spec(
        schedule=CRON, concurrency_policy=ALLOW, misfire=random.choice([*Misfire]), spread_seconds=0
    )
    job_id, planner = add_job(database, now), a_planner(database, EngineSettings())
    clock.advance(HOUR)
    planner.tick(term)
    for _ in range(20):
        clock.advance(random.choice([30, 299, 3600, 7200]))
        changes: dict[str, Any] = {}
        match random.randrange(4):
            case 0 | 1:
                planner.tick(term)
                continue
            case 2:
                changes = {"enabled": not now.enabled}
            case _:
                changes = {"schedule": random.choice([CRON, HOURLY, MINUTELY, None])}
        now = replace(now, **changes)
        change_job(database, job_id, now)
    while planner.tick(term).more:
        pass
    assert [one.named for one in verified(database) if not one.is_ok] == []
    for run in all_runs(database):
        vanish(database, run.id)
    found = sum(one.faults for one in verified(database))
    assert found > 0
