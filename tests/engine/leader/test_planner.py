"""Every due tick becomes a run or a recorded skip, once, in a race between planners and under clock skew too."""

import logging
from random import Random
from typing import Any

import pytest

from support.factories import (
    add_job,
    create_run,
    depose_and_take,
    make_schedule_unreadable,
    read_run,
    spec,
)
from support.moving_clock import NOON, MovingClock
from support.planning import (
    ALLOW,
    HOUR,
    HOURLY,
    a_planner,
    accounted,
    all_runs,
    at,
    created,
    end_all,
    job_of,
    scheduled,
    ticks_of,
)
from support.unreliable_database import UnreliableDatabase
from tsuzuki.engine.leader.planner import PlanningResult
from tsuzuki.model.errors import Unreachable
from tsuzuki.model.misfire import Misfire
from tsuzuki.model.overlap import ConcurrencyPolicy
from tsuzuki.model.schedule import parse_schedule
from tsuzuki.model.states import Reason, RunState, Trigger
from tsuzuki.store.leadership import Term
from tsuzuki.store.sql.database import Database

pytestmark = pytest.mark.usefixtures("history_is_valid")


# --- on time --------------------------------------------------------------------------------------


def test_a_tick_becomes_a_run_at_its_moment_and_not_before(
    database: Database, clock: MovingClock, term: Term
) -> None:
    job_id = scheduled(
        database, arguments={"n": 1}, priority=7, concurrency_key="n", on_event="also.this"
    )
    planner = a_planner(database)
    clock.advance(HOUR - 0.000001)
    assert planner.tick(term) == PlanningResult(now=database.clock.now(), next_at=at(1))
    assert all_runs(database) == []
    clock.advance(0.000001)
    assert planner.tick(term).created == 1
    (run,) = all_runs(database)
    assert run.state is RunState.PENDING
    assert (run.job_definition_id, run.trigger, run.scheduled_for) == (job_id, Trigger.TIME, at(1))
    assert (run.arguments, run.priority, run.concurrency_key) == ({"n": 1}, 7, "1")
    assert (run.covers_ticks, run.covers_until) == (1, None)
    assert planner.tick(term).created == 0


@pytest.mark.parametrize("misfire", Misfire)
def test_a_tick_within_the_grace_runs_under_every_policy(
    database: Database, clock: MovingClock, term: Term, misfire: Misfire
) -> None:
    scheduled(database, misfire=misfire)
    clock.advance(HOUR + 59)
    planned = a_planner(database).tick(term)
    assert (planned.created, planned.skipped) == (1, 0)
    assert created(database) == [(at(1), RunState.PENDING, None)]


def test_next_at_is_the_nearest_tick_of_any_job_also_of_one_just_planned(
    database: Database, clock: MovingClock, term: Term
) -> None:
    planner = a_planner(database)
    assert planner.tick(term).next_at is None
    scheduled(database, parse_schedule("every 4h"), name="slow")
    assert planner.tick(term).next_at == at(4)
    scheduled(database, HOURLY, name="quick", concurrency_policy=ALLOW)
    assert planner.tick(term).next_at == at(1)
    clock.advance(HOUR)
    planned = planner.tick(term)
    assert (planned.created, planned.next_at) == (1, at(2))
    clock.advance(HOUR)
    assert planner.tick(term).next_at == at(3)


def test_next_at_follows_a_skipped_tick_too(
    database: Database, clock: MovingClock, term: Term
) -> None:
    scheduled(database)
    planner = a_planner(database)
    clock.advance(HOUR)
    planner.tick(term)
    clock.advance(HOUR)
    planned = planner.tick(term)
    assert (planned.created, planned.skipped, planned.next_at) == (0, 1, at(3))


# --- once, in a race too --------------------------------------------------------------------------


def test_two_planners_of_one_term_make_one_run(
    database: Database, clock: MovingClock, term: Term
) -> None:
    scheduled(database, concurrency_policy=ALLOW)
    other = a_planner(database)
    raced = UnreliableDatabase(database)
    planner = a_planner(raced)
    clock.advance(HOUR)
    answers: list[PlanningResult] = []
    plan = planner._plan

    def plan_late(*asked: Any) -> Any:
        answers.append(other.tick(term))
        return plan(*asked)

    planner._plan = plan_late  # type: ignore[method-assign]
    answers.append(planner.tick(term))
    assert [answer.created for answer in answers] == [1, 0]
    assert created(database) == [(at(1), RunState.PENDING, None)]


def test_a_planner_that_was_deposed_creates_nothing_and_advances_nothing(
    database: Database, clock: MovingClock, term: Term
) -> None:
    job_id = scheduled(database, misfire=Misfire.ALL, concurrency_policy=ConcurrencyPolicy.REPLACE)
    live = create_run(database, job_id)
    clock.advance(30 * HOUR)
    new_term = depose_and_take(database)
    old = a_planner(database).tick(term)
    assert (old.created, old.skipped, old.more) == (0, 0, False)
    assert job_of(database, job_id).planned_until == NOON
    assert [run.id for run in all_runs(database)] == [live.id]
    assert read_run(database, live.id).state is RunState.PENDING
    new = a_planner(database).tick(new_term)
    too_late_as_one_range, replaced = 1, 24
    assert (new.created, new.skipped) == (1, too_late_as_one_range + replaced)


@pytest.mark.parametrize("fault", ["lost reply", "crash before commit"])
def test_planning_again_after_a_fault_completes_it_and_makes_no_tick_twice(
    database: Database, clock: MovingClock, term: Term, fault: str
) -> None:
    scheduled(database, misfire=Misfire.ONE)
    unreliable = UnreliableDatabase(database)
    planner = a_planner(unreliable)
    clock.advance(2.5 * HOUR)
    if fault == "lost reply":
        unreliable.replies_to_lose = 1
    else:
        unreliable.crash_before_commit = True
    with pytest.raises(Unreachable):
        planner.tick(term)
    planner.tick(term)
    assert created(database) == [
        (at(1), RunState.CANCELED, Reason.LATE),
        (at(2), RunState.PENDING, None),
    ]


def test_one_job_planned_before_a_crash_is_not_planned_again_with_the_rest(
    database: Database, clock: MovingClock, term: Term
) -> None:
    for name in ("first", "second", "third"):
        scheduled(database, name=name)
    unreliable = UnreliableDatabase(database)
    planner = a_planner(unreliable)
    clock.advance(HOUR)
    unreliable.after_commit.append(lambda: setattr(unreliable, "crash_before_commit", True))
    with pytest.raises(Unreachable):
        planner.tick(term)
    assert len(all_runs(database)) == 1
    assert planner.tick(term).created == 2
    assert len({run.job_definition_id for run in all_runs(database)}) == 3


# --- the clock ------------------------------------------------------------------------------------


def test_a_clock_that_steps_back_an_hour_makes_no_tick_twice_and_loses_none(
    database: Database, clock: MovingClock, term: Term
) -> None:
    scheduled(database, parse_schedule("every 20m"), concurrency_policy=ALLOW)
    planner = a_planner(database)
    for _ in range(3):
        clock.advance(HOUR / 3)
        planner.tick(term)
    clock.step(-HOUR)
    for _ in range(4):
        clock.advance(HOUR / 3)
        planner.tick(term)
        a_planner(database).tick(term)
    assert [run.scheduled_for for run in all_runs(database)] == [
        at(third / 3) for third in range(1, 5)
    ]


def test_a_clock_that_steps_forward_an_hour_and_back_accounts_for_every_tick_once(
    database: Database, clock: MovingClock, term: Term
) -> None:
    schedule = parse_schedule("every 10m")
    scheduled(database, schedule, concurrency_policy=ALLOW)
    planner = a_planner(database)
    clock.step(HOUR)
    planner.tick(term)
    clock.step(-HOUR)
    for _ in range(9):
        clock.advance(600)
        planner.tick(term)
    assert accounted(all_runs(database), schedule) == ticks_of(schedule, NOON, clock.now())


# --- the law --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_whatever_the_downtime_every_due_tick_is_a_run_or_a_recorded_skip(
    database: Database, clock: MovingClock, term: Term, seed: int
) -> None:
    """Random downtimes, faults, changes of leader, steps of the clock and ends of runs."""
    random = Random(seed)
    unreliable = UnreliableDatabase(database)
    specs = [
        spec(
            f"job-{n}",
            schedule=parse_schedule(words),
            misfire=random.choice(list(Misfire)),
            concurrency_policy=random.choice(list(ConcurrencyPolicy)),
            catchup_window_seconds=random.choice([0.0, 300.0, 7200.0]),
        )
        for n, words in enumerate(["every 7m", "every 90s", "*/4 * * * *", "12,47 * * * *"])
    ]
    ids = [add_job(database, each) for each in specs]
    planner, latest = a_planner(unreliable), clock.now()
    for _ in range(25):
        clock.advance(random.choice([5.0, 60.0, 400.0, 3000.0, 20_000.0]) * random.random())
        if random.random() < 0.1:
            clock.step(random.choice([-HOUR, HOUR]))
        latest = max(latest, clock.now())
        if random.random() < 0.2:
            term, planner = depose_and_take(database), a_planner(unreliable)
        unreliable.replies_to_lose = int(random.random() < 0.15)
        unreliable.crash_before_commit = random.random() < 0.15
        try:
            planner.tick(term)
        except Unreachable:
            unreliable.replies_to_lose, unreliable.crash_before_commit = 0, False
        if random.random() < 0.5:
            end_all(database)
    clock.advance((latest - clock.now()).total_seconds())
    unreliable.replies_to_lose, unreliable.crash_before_commit = 0, False
    while planner.tick(term).more:
        pass
    made = all_runs(database)
    for job_id, each in zip(ids, specs, strict=True):
        assert each.schedule is not None
        of_job = [run for run in made if run.job_definition_id == job_id]
        assert accounted(of_job, each.schedule) == ticks_of(each.schedule, NOON, clock.now())
    reasons = {run.reason for run in made}
    assert Reason.LATE in reasons, "nothing was ever late"
    assert reasons - {Reason.LATE, Reason.OVERLAP}, "nothing ever ran"


def test_a_schedule_that_this_machine_cannot_read_stops_only_its_own_job(
    database: Database, clock: MovingClock, term: Term, caplog: pytest.LogCaptureFixture
) -> None:
    """A time zone that only other machines know, or a schedule of a newer version."""
    unreadable = scheduled(database)
    add_job(database, spec("readable", schedule=HOURLY))
    make_schedule_unreadable(database, unreadable)
    clock.advance(HOUR)
    planner = a_planner(database)
    with caplog.at_level(logging.ERROR, logger="tsuzuki"):
        assert planner.tick(term).created == 1
        planner.tick(term)
    assert [run.job_name for run in all_runs(database)] == ["readable"]
    (told,) = caplog.messages
    assert told.startswith("job not planned in this round job=hello error=")
    assert "Mars/Olympus" in told
