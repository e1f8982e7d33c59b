"""Changes of jobs: ticks that were due become runs or recorded skips, whatever happens to the job."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest

from support.factories import add_job, create_run, spec, take_lead
from support.history_checker import check_history
from support.moving_clock import MovingClock
from support.planning import (
    ALLOW,
    HOUR,
    HOURLY,
    MINUTELY,
    a_planner,
    all_runs,
    at,
    change_job,
    job_of,
)
from tsuzuki.model.job import JobSpec
from tsuzuki.model.misfire import TICKS_COUNTED_MAX, Misfire
from tsuzuki.model.schedule import Schedule, parse_schedule
from tsuzuki.model.states import Actor, Reason, RunState, Trigger
from tsuzuki.services import job_changes
from tsuzuki.store.leadership import Term
from tsuzuki.store.runs import runs
from tsuzuki.store.sql.database import Database

OFF = {"schedule": HOURLY, "enabled": False}
EVERY_2H = parse_schedule("every 2h")
CRON = parse_schedule({"cron": "*/5 * * * *", "timezone": "Europe/Berlin"})


@pytest.fixture(autouse=True)
def history_is_valid(database: Database) -> Iterator[None]:
    yield
    check_history(database)


@pytest.fixture
def term(database: Database) -> Term:
    return take_lead(database, lease_seconds=10_000_000.0)


def edit(database: Database, job_id: int, **changes: Any) -> None:
    change_job(database, job_id, replace(job_of(database, job_id).spec, **changes))


def remove(database: Database, job_id: int) -> None:
    name = job_of(database, job_id).spec.name
    with database.write() as connection:
        job_changes.remove(connection, name, actor="ada")


def records(database: Database) -> list[tuple[int, datetime, datetime | None, Reason | None]]:
    return [
        (run.covers_ticks, run.scheduled_for, run.covers_until, run.reason)
        for run in all_runs(database)
        if run.state is RunState.CANCELED and run.trigger is Trigger.TIME
    ]


# --- what is planned anew ---------------------------------------------------------------------------

PLANNED_ANEW: dict[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
    "another schedule": ({"schedule": HOURLY}, {"schedule": EVERY_2H}, True),
    "a first schedule": ({}, {"schedule": HOURLY}, True),
    "no schedule": ({"schedule": HOURLY}, {"schedule": None}, True),
    "enabled": (OFF, {"enabled": True}, True),
    "disabled": ({"schedule": HOURLY}, {"enabled": False}, True),
    "something else": ({"schedule": HOURLY}, {"priority": 5}, False),
    "same schedule": ({"schedule": HOURLY}, {"schedule": parse_schedule("every 60m")}, False),
    "something else while disabled": (OFF, {"priority": 5}, False),
}


@pytest.mark.parametrize("case", PLANNED_ANEW)
def test_a_job_is_planned_anew_when_its_schedule_changes(
    database: Database, clock: MovingClock, case: str
) -> None:
    before, after, is_anew = PLANNED_ANEW[case]
    job_id = add_job(database, spec(**before))
    planned_until = job_of(database, job_id).planned_until
    clock.advance(HOUR / 2)
    edit(database, job_id, **after)
    expected = clock.now() if is_anew else planned_until
    assert job_of(database, job_id).planned_until == expected
    assert records(database) == []


# --- what is recorded -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"schedule": EVERY_2H}, Reason.SCHEDULE_CHANGED),
        ({"schedule": None}, Reason.SCHEDULE_CHANGED),
        ({"enabled": False}, Reason.JOB_DISABLED),
        (None, Reason.JOB_DELETED),
    ],
)
def test_ticks_that_were_due_before_a_change_are_one_skip(
    database: Database, clock: MovingClock, changes: dict[str, Any] | None, reason: Reason
) -> None:
    job_id = add_job(database, spec(schedule=HOURLY))
    clock.advance(10.5 * HOUR)
    remove(database, job_id) if changes is None else edit(database, job_id, **changes)
    assert records(database) == [(10, at(1), at(10), reason)]
    with database.read() as connection:
        (canceled,) = runs.history(connection, all_runs(database)[0].id)
    assert (canceled.actor, canceled.reason) == (Actor.OPERATOR, reason)


def test_ticks_that_passed_while_a_job_was_disabled_are_one_skip_when_it_is_enabled(
    database: Database, clock: MovingClock
) -> None:
    job_id = add_job(database, spec(**OFF))
    clock.advance(3.5 * HOUR)
    edit(database, job_id, priority=5)
    assert records(database) == []
    edit(database, job_id, enabled=True)
    assert records(database) == [(3, at(1), at(3), Reason.JOB_DISABLED)]


def test_a_disabled_job_that_is_removed_or_rescheduled_skips_nothing(
    database: Database, clock: MovingClock
) -> None:
    job_id = add_job(database, spec(**OFF))
    clock.advance(3.5 * HOUR)
    edit(database, job_id, schedule=EVERY_2H)
    remove(database, job_id)
    assert records(database) == []


def test_a_tick_that_is_due_later_because_of_the_spread_outlives_a_change(
    database: Database, clock: MovingClock, term: Term
) -> None:
    job_id = add_job(database, spec(schedule=HOURLY, spread_seconds=600.0))
    offset = job_of(database, job_id).spec.spread_offset.total_seconds()
    clock.advance(2 * HOUR + offset / 2)
    edit(database, job_id, enabled=False)
    edit(database, job_id, enabled=True)
    assert records(database) == [(1, at(1), at(1), Reason.JOB_DISABLED)]
    clock.advance(offset)
    a_planner(database).tick(term)
    assert [run.scheduled_for for run in all_runs(database)][1:] == [at(2)]


def test_a_planning_between_reading_and_changing_a_job_is_not_recorded_again(
    database: Database, clock: MovingClock, term: Term
) -> None:
    job_id = add_job(database, spec(schedule=HOURLY))
    read = job_of(database, job_id)
    clock.advance(3.5 * HOUR)
    a_planner(database).tick(term)
    clock.advance(2 * HOUR)
    change = job_changes.JobSyncChange(
        kind=job_changes.ChangeKind.CHANGE,
        name="hello",
        before=read,
        after=replace(read.spec, schedule=EVERY_2H),
    )
    with database.write() as connection:
        job_changes.carry_out(connection, [change], source=read.source, actor="ada")
    assert records(database)[-1] == (2, at(4), at(5), Reason.SCHEDULE_CHANGED)
    assert sum(run.covers_ticks for run in all_runs(database)) == 5


def test_what_waited_for_a_removed_job_does_not_run_when_its_name_is_used_again(
    database: Database,
) -> None:
    """No leader was there meanwhile that would have canceled it."""
    job_id = add_job(database, spec())
    waiting = create_run(database, job_id)
    remove(database, job_id)
    with database.write() as connection:
        job_changes.create(connection, spec(arguments={"other": 1}), actor="ada")
    after = create_run(database, job_id)
    found = {run.id: (run.state, run.reason) for run in all_runs(database)}
    assert found == {
        waiting.id: (RunState.CANCELED, Reason.JOB_DELETED),
        after.id: (RunState.PENDING, None),
    }


def test_ticks_of_a_year_are_counted_in_a_moment(database: Database, clock: MovingClock) -> None:
    second = add_job(database, spec("second", schedule=parse_schedule("every 1s")))
    minute = add_job(database, spec("minute", schedule=parse_schedule({"cron": "* * * * *"})))
    clock.advance(365 * 24 * HOUR)
    edit(database, second, enabled=False)
    edit(database, minute, enabled=False)
    found = records(database)
    assert [ticks for ticks, *_ in found] == [365 * 86_400, TICKS_COUNTED_MAX]
    assert [until for _, _, until, _ in found] == [clock.now()] * 2


# --- the invariant ----------------------------------------------------------------------------------


class Ledger:
    """Counts the ticks of a job that came due, by asking its schedule for each."""

    def __init__(self, now: datetime) -> None:
        self.due = 0
        self._since = now

    def settle(self, job: JobSpec, now: datetime, *, becomes: JobSpec | None = None) -> None:
        """Count what was due under this definition. Ticks of a disabled job count once it is enabled."""
        until = now - job.spread_offset
        is_counted = job.enabled or (becomes is not None and becomes.enabled)
        if is_counted and job.schedule is not None:
            self.due += _count(job.schedule, self._since, until)
        self._since = until


def _count(schedule: Schedule, after: datetime, until: datetime) -> int:
    count = 0
    while (after := schedule.next_after(after)) <= until:
        count += 1
    return count


@pytest.mark.parametrize("seed", range(6))
def test_due_ticks_are_runs_or_skips_across_changes(
    database: Database, clock: MovingClock, term: Term, seed: int
) -> None:
    random = Random(seed)
    now = spec(
        schedule=CRON,
        concurrency_policy=ALLOW,
        misfire=random.choice([*Misfire]),
        spread_seconds=random.choice([0.0, 300.0]),
    )
    job_id = add_job(database, now)
    ledger, planner = Ledger(clock.now()), a_planner(database)
    for _ in range(12):
        clock.advance(random.choice([1, 30, 299, 3600]))
        match random.randrange(4):
            case 0 | 1:
                planner.tick(term)
                continue
            case 2:
                new = replace(now, enabled=not now.enabled)
            case _:
                new = replace(now, schedule=random.choice([CRON, HOURLY, MINUTELY, None]))
        if new != now:
            ledger.settle(now, clock.now(), becomes=new)
        change_job(database, job_id, new)
        now = new
    while planner.tick(term).more:
        pass
    if now.enabled:
        ledger.settle(now, clock.now())
    assert sum(run.covers_ticks for run in all_runs(database)) == ledger.due
    assert timedelta() <= clock.now() - job_of(database, job_id).planned_until
