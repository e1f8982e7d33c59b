"""Every due tick becomes a run or a recorded skip, once, whoever plans and whatever the clock does."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from random import Random
from typing import Any
from unittest.mock import patch

import pytest

from support.dialects import only_on_postgresql
from support.factories import (
    add_job,
    add_worker,
    create_run,
    depose_and_take,
    read_run,
    run_in_state,
    spec,
    take_lead,
)
from support.history_checker import check_history
from support.moving_clock import NOON, MovingClock
from support.unreliable_database import UnreliableDatabase
from tsuzuki.engine.coordination.protocol import NoCoordination
from tsuzuki.engine.leader.leader import Leader, LeaderRound
from tsuzuki.engine.leader.planner import Planned, Planner
from tsuzuki.model.clock import ManualClock
from tsuzuki.model.errors import Unreachable
from tsuzuki.model.job import Job, JobSpec
from tsuzuki.model.misfire import Misfire
from tsuzuki.model.overlap import ConcurrencyPolicy
from tsuzuki.model.run import Run
from tsuzuki.model.schedule import Schedule, parse_schedule
from tsuzuki.model.settings import EngineSettings
from tsuzuki.model.states import Actor, Reason, RunState, Trigger
from tsuzuki.store import jobs
from tsuzuki.store.leadership import Term
from tsuzuki.store.runs import moves, runs
from tsuzuki.store.runs.runs import SELECT_RUNS, run_from
from tsuzuki.store.schema.tables import job_runs
from tsuzuki.store.sql.database import Database
from tsuzuki.store.wakeups import channels
from tsuzuki.store.wakeups.channels import Channel

HOURLY = parse_schedule("every 1h")
MINUTELY = parse_schedule("every 1m")
ALLOW = ConcurrencyPolicy.ALLOW
HOUR = 3600.0


@pytest.fixture
def term(database: Database) -> Term:
    return take_lead(database, lease_seconds=600 * HOUR)


@pytest.fixture(autouse=True)
def lawful(database: Database) -> Iterator[None]:
    yield
    check_history(database)


def a_planner(database: Database, settings: EngineSettings | None = None) -> Planner:
    return Planner(database=database, settings=lambda: settings or EngineSettings())


def scheduled(database: Database, schedule: Schedule = HOURLY, **changes: Any) -> int:
    return add_job(database, spec(schedule=schedule, **changes))


def job_of(database: Database, job_id: int) -> Job:
    with database.read() as connection:
        job = jobs.get(connection, job_id)
    assert job is not None
    return job


def change_job(database: Database, job_id: int, new: JobSpec) -> None:
    job = job_of(database, job_id)
    with database.write() as connection:
        assert jobs.change(connection, job=job, spec=new)


def all_runs(database: Database) -> list[Run]:
    with database.read() as connection:
        rows = connection.execute(SELECT_RUNS.order_by(job_runs.c.id)).mappings()
        return [run_from(row) for row in rows]


def born(database: Database) -> list[tuple[datetime, RunState, Reason | None]]:
    return [(run.scheduled_for, run.state, run.reason) for run in all_runs(database)]


def at(hours: float) -> datetime:
    return NOON + timedelta(hours=hours)


def end_all(database: Database) -> None:
    """Whatever is unfinished is ended, so that no tick finds anything in its way."""
    with database.write() as connection:
        rows = connection.execute(SELECT_RUNS.where(job_runs.c.finished_at.is_(None))).mappings()
        live = [run_from(row) for row in rows]
        refs = [moves.RunRef(id=run.id, version=run.version) for run in live]
        assert len(moves.cancel(connection, operator="test", runs=refs)) == len(refs)


# --- on time --------------------------------------------------------------------------------------


def test_a_tick_becomes_a_run_at_its_moment_and_not_before(
    database: Database, clock: MovingClock, term: Term
) -> None:
    job_id = scheduled(
        database, arguments={"n": 1}, priority=7, concurrency_key="n", on_event="also.this"
    )
    planner = a_planner(database)
    clock.advance(HOUR - 0.000001)
    assert planner.tick(term) == Planned(now=database.clock.now(), next_at=at(1))
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
    assert born(database) == [(at(1), RunState.PENDING, None)]


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


def test_the_leaders_next_round_is_due_with_the_nearest_tick_or_waiting_run(
    database: Database, clock: MovingClock, term: Term
) -> None:
    settings = EngineSettings()
    leader = Leader.with_all_duties(
        database=database,
        settings=lambda: settings,
        random=Random(1),
        coordination=NoCoordination(),
    )
    assert leader.tick(term) == LeaderRound()
    job_id = scheduled(database)
    assert leader.tick(term).next_at == at(1)
    create_run(database, job_id, scheduled_for=at(0.5))
    assert leader.tick(term).next_at == at(0.5)
    clock.advance(0.5 * HOUR)
    assert leader.tick(term).next_at == at(1)


@only_on_postgresql
@pytest.mark.parametrize("ahead_seconds", [-2 * HOUR, 2 * HOUR])
def test_a_leader_waits_by_the_databases_clock_however_far_its_own_is_from_it(
    database: Database, term: Term, ahead_seconds: float
) -> None:
    settings = EngineSettings()
    scheduled(database)
    own_clock = ManualClock(NOON + timedelta(seconds=ahead_seconds))
    leader = Leader.with_all_duties(
        database=Database(database.engine, clock=own_clock),
        settings=lambda: settings,
        random=Random(1),
        coordination=NoCoordination(),
    )
    assert leader.tick(term).seconds_to_next == HOUR


# --- late: each misfire policy --------------------------------------------------------------------


def test_misfire_one_runs_the_newest_and_records_each_older_as_late(
    database: Database, clock: MovingClock, term: Term
) -> None:
    scheduled(database, misfire=Misfire.ONE)
    clock.advance(3.5 * HOUR)
    planned = a_planner(database).tick(term)
    assert (planned.created, planned.skipped) == (1, 2)
    assert born(database) == [
        (at(1), RunState.CANCELED, Reason.LATE),
        (at(2), RunState.CANCELED, Reason.LATE),
        (at(3), RunState.PENDING, None),
    ]


def test_misfire_one_beyond_the_window_runs_nothing(
    database: Database, clock: MovingClock, term: Term
) -> None:
    scheduled(database, misfire=Misfire.ONE, catchup_window_seconds=60)
    clock.advance(1.5 * HOUR)
    a_planner(database).tick(term)
    assert born(database) == [(at(1), RunState.CANCELED, Reason.LATE)]


def test_misfire_skip_records_what_is_late_and_waits_for_the_next(
    database: Database, clock: MovingClock, term: Term
) -> None:
    scheduled(database, misfire=Misfire.SKIP)
    planner = a_planner(database)
    clock.advance(2 * HOUR + 61)
    planned = planner.tick(term)
    assert (planned.created, planned.skipped, planned.next_at) == (0, 2, at(3))
    clock.advance(HOUR - 61)
    assert planner.tick(term).created == 1
    assert born(database)[-1] == (at(3), RunState.PENDING, None)


def test_misfire_all_runs_every_tick_within_the_window_oldest_first(
    database: Database, clock: MovingClock, term: Term
) -> None:
    scheduled(
        database, misfire=Misfire.ALL, catchup_window_seconds=2 * HOUR, concurrency_policy=ALLOW
    )
    clock.advance(4 * HOUR)
    planned = a_planner(database).tick(term)
    assert (planned.created, planned.skipped) == (3, 1)
    assert born(database) == [
        (at(1), RunState.CANCELED, Reason.LATE),
        (at(2), RunState.PENDING, None),
        (at(3), RunState.PENDING, None),
        (at(4), RunState.PENDING, None),
    ]


def test_the_grace_is_the_setting_in_force(
    database: Database, clock: MovingClock, term: Term
) -> None:
    scheduled(database, misfire=Misfire.SKIP)
    clock.advance(1.5 * HOUR)
    patient = EngineSettings(misfire_grace_seconds=1800)
    assert a_planner(database, patient).tick(term).created == 1


def test_a_long_absence_is_recorded_as_one_skip_that_says_what_it_covers(
    database: Database, clock: MovingClock, term: Term
) -> None:
    scheduled(database, MINUTELY)
    clock.advance(10 * HOUR)
    a_planner(database).tick(term)
    skip, run = all_runs(database)
    assert (skip.state, skip.reason) == (RunState.CANCELED, Reason.LATE)
    assert (skip.scheduled_for, skip.covers_until) == (at(1 / 60), at(10 - 1 / 60))
    assert skip.covers_ticks == 599
    assert (run.scheduled_for, run.state) == (at(10), RunState.PENDING)


def test_a_skip_has_its_history_signed_by_the_leader(
    database: Database, clock: MovingClock, term: Term
) -> None:
    scheduled(database, misfire=Misfire.SKIP)
    clock.advance(1.5 * HOUR)
    a_planner(database).tick(term)
    (skip,) = all_runs(database)
    with database.read() as connection:
        (move,) = runs.history(connection, skip.id)
    assert (move.actor, move.actor_id, move.epoch) == (Actor.LEADER, term.holder, term.epoch)
    assert (move.from_state, move.to_state, move.reason) == (
        RunState.PENDING,
        RunState.CANCELED,
        Reason.LATE,
    )


def test_more_ticks_than_one_round_takes_are_planned_in_further_rounds(
    database: Database, clock: MovingClock, term: Term
) -> None:
    cron = parse_schedule("* * * * *")
    scheduled(database, cron, misfire=Misfire.ALL, concurrency_policy=ALLOW)
    planner = a_planner(database)
    clock.advance(18 * HOUR)
    first, second, third = (planner.tick(term) for _ in range(3))
    assert (first.created, first.more) == (1000, True)
    assert (second.created, second.more, second.next_at) == (80, False, at(18 + 1 / 60))
    assert (third.created, third.more) == (0, False)
    assert [run.scheduled_for for run in all_runs(database)] == [
        at(minute / 60) for minute in range(1, 1081)
    ]


# --- overlap --------------------------------------------------------------------------------------

LIVE = [RunState.PENDING, RunState.ASSIGNED, RunState.RUNNING, RunState.ORPHANED]


@pytest.mark.parametrize("state", LIVE)
def test_forbid_records_a_tick_that_finds_a_live_run_as_overlap(
    database: Database, clock: MovingClock, term: Term, state: RunState
) -> None:
    scheduled(database)
    add_worker(database)
    live = run_in_state(database, state, term)
    clock.advance(HOUR)
    planned = a_planner(database).tick(term)
    assert (planned.created, planned.skipped) == (0, 1)
    assert born(database)[1:] == [(at(1), RunState.CANCELED, Reason.OVERLAP)]
    assert read_run(database, live.id).state is state


def test_forbid_starts_again_when_the_live_run_has_ended(
    database: Database, clock: MovingClock, term: Term
) -> None:
    scheduled(database)
    planner = a_planner(database)
    clock.advance(HOUR)
    planner.tick(term)
    clock.advance(HOUR)
    planner.tick(term)
    end_all(database)
    clock.advance(HOUR)
    assert planner.tick(term).created == 1
    assert [reason for _, _, reason in born(database)] == [Reason.OPERATOR, Reason.OVERLAP, None]


def test_forbid_counts_up_to_the_limit_of_the_job(
    database: Database, clock: MovingClock, term: Term
) -> None:
    scheduled(database, max_concurrent=2)
    planner = a_planner(database)
    for _ in range(3):
        clock.advance(HOUR)
        planner.tick(term)
    assert [state for _, state, _ in born(database)] == [
        RunState.PENDING,
        RunState.PENDING,
        RunState.CANCELED,
    ]


def test_allow_makes_a_run_of_every_tick(
    database: Database, clock: MovingClock, term: Term
) -> None:
    scheduled(database, concurrency_policy=ALLOW, max_concurrent=1)
    planner = a_planner(database)
    for _ in range(3):
        clock.advance(HOUR)
        assert planner.tick(term).created == 1
    assert {state for _, state, _ in born(database)} == {RunState.PENDING}


@pytest.mark.parametrize("state", LIVE)
def test_replace_cancels_the_live_run_and_takes_its_place(
    database: Database, clock: MovingClock, term: Term, state: RunState
) -> None:
    scheduled(database, concurrency_policy=ConcurrencyPolicy.REPLACE)
    add_worker(database)
    live = run_in_state(database, state, term)
    clock.advance(HOUR)
    with patch.object(channels, "notify", wraps=channels.notify) as notify:
        assert a_planner(database).tick(term).created == 1
    assert [told.args[1] for told in notify.call_args_list] == [Channel.WORKERS]
    replaced, new = all_runs(database)
    assert (replaced.id, replaced.state, replaced.reason) == (
        live.id,
        RunState.CANCELED,
        Reason.REPLACED,
    )
    assert (new.scheduled_for, new.state) == (at(1), RunState.PENDING)


def test_replace_leaves_the_runs_of_other_jobs_alone(
    database: Database, clock: MovingClock, term: Term
) -> None:
    scheduled(database, concurrency_policy=ConcurrencyPolicy.REPLACE)
    other = create_run(database, add_job(database, spec("other")))
    clock.advance(HOUR)
    a_planner(database).tick(term)
    assert read_run(database, other.id).state is RunState.PENDING


# --- once, whoever plans --------------------------------------------------------------------------


def test_two_planners_of_one_term_make_one_run(
    database: Database, clock: MovingClock, term: Term
) -> None:
    scheduled(database, concurrency_policy=ALLOW)
    other = a_planner(database)
    raced = UnreliableDatabase(database)
    planner = a_planner(raced)
    clock.advance(HOUR)
    answers: list[Planned] = []
    plan = planner._plan

    def plan_late(*asked: Any) -> Any:
        answers.append(other.tick(term))
        return plan(*asked)

    planner._plan = plan_late  # type: ignore[method-assign]
    answers.append(planner.tick(term))
    assert [answer.created for answer in answers] == [1, 0]
    assert born(database) == [(at(1), RunState.PENDING, None)]


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
    assert (new.created, new.skipped) == (25, 5)


@pytest.mark.parametrize("accident", ["lost reply", "crash before commit"])
def test_planning_again_after_an_accident_completes_it_without_repeating_it(
    database: Database, clock: MovingClock, term: Term, accident: str
) -> None:
    scheduled(database, misfire=Misfire.ONE)
    unreliable = UnreliableDatabase(database)
    planner = a_planner(unreliable)
    clock.advance(2.5 * HOUR)
    if accident == "lost reply":
        unreliable.replies_to_lose = 1
    else:
        unreliable.crash_before_commit = True
    with pytest.raises(Unreachable):
        planner.tick(term)
    planner.tick(term)
    assert born(database) == [
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


def test_a_clock_that_steps_back_an_hour_repeats_no_tick_and_loses_none(
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
    assert accounted(all_runs(database)) == ticks_of(schedule, NOON, clock.now())


# --- a job that changes ---------------------------------------------------------------------------


def test_a_disabled_job_is_not_planned_and_its_missed_ticks_are_not_made_up_for(
    database: Database, clock: MovingClock, term: Term
) -> None:
    job_id = scheduled(database)
    planner = a_planner(database)
    change_job(database, job_id, spec(schedule=HOURLY, enabled=False))
    clock.advance(2.5 * HOUR)
    assert planner.tick(term) == Planned(now=database.clock.now())
    change_job(database, job_id, spec(schedule=HOURLY))
    assert planner.tick(term).next_at == at(3)
    clock.advance(0.5 * HOUR)
    planner.tick(term)
    assert born(database) == [(at(3), RunState.PENDING, None)]


def test_a_removed_job_is_not_planned(database: Database, clock: MovingClock, term: Term) -> None:
    job_id = scheduled(database)
    planner = a_planner(database)
    planner.tick(term)
    job = job_of(database, job_id)
    with database.write() as connection:
        jobs.remove(connection, job=job)
    clock.advance(HOUR)
    assert planner.tick(term) == Planned(now=database.clock.now())


def test_a_rescheduled_job_is_planned_by_its_new_schedule_from_then_on(
    database: Database, clock: MovingClock, term: Term
) -> None:
    job_id = scheduled(database)
    planner = a_planner(database)
    assert planner.tick(term).next_at == at(1)
    clock.advance(1.1 * HOUR)
    change_job(database, job_id, spec(schedule=MINUTELY, concurrency_policy=ALLOW))
    assert planner.tick(term).created == 0
    clock.advance(60)
    planner.tick(term)
    assert [run.scheduled_for for run in all_runs(database)] == [at(67 / 60)]


def test_a_job_that_changes_while_it_is_planned_is_planned_as_it_is_then(
    database: Database, clock: MovingClock, term: Term
) -> None:
    job_id = scheduled(database, arguments={"old": True})
    planner = a_planner(database)
    clock.advance(HOUR)
    plan = planner._plan

    def plan_late(*asked: Any) -> Any:
        change_job(database, job_id, spec(schedule=HOURLY, arguments={"new": True}))
        planner._plan = plan  # type: ignore[method-assign]
        return plan(*asked)

    planner._plan = plan_late  # type: ignore[method-assign]
    assert planner.tick(term).created == 0
    assert planner.tick(term).created == 1
    (run,) = all_runs(database)
    assert run.arguments == {"new": True}


def test_a_new_job_owes_nothing_for_the_time_before_it(
    database: Database, clock: MovingClock, term: Term
) -> None:
    clock.advance(5.5 * HOUR)
    scheduled(database)
    assert a_planner(database).tick(term).next_at == at(6)
    assert all_runs(database) == []


# --- the law --------------------------------------------------------------------------------------


def ticks_of(schedule: Schedule, after: datetime, until: datetime) -> list[datetime]:
    ticks = []
    while (after := schedule.next_after(after)) <= until:
        ticks.append(after)
    return ticks


def accounted(made: list[Run], schedule: Schedule | None = None) -> list[datetime]:
    """Every tick that a run or a skip stands for, in order."""
    ticks: list[datetime] = []
    for run in made:
        if run.trigger is not Trigger.TIME:
            continue
        ticks.append(run.scheduled_for)
        if run.covers_ticks > 1:
            assert schedule is not None
            assert run.covers_until is not None
            covered = ticks_of(schedule, run.scheduled_for, run.covers_until)
            assert len(covered) == run.covers_ticks - 1
            ticks += covered
    return sorted(ticks)


@pytest.mark.parametrize("seed", range(4))
def test_whatever_the_downtime_every_due_tick_is_a_run_or_a_recorded_skip(
    database: Database, clock: MovingClock, term: Term, seed: int
) -> None:
    """Random absences, accidents, changes of leader, steps of the clock and ends of runs."""
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
