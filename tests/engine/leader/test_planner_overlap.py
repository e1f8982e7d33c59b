"""A tick that finds a live run of its job: forbid, allow and replace."""

from unittest.mock import patch

import pytest

from support.factories import (
    add_job,
    add_worker,
    create_run,
    read_run,
    run_in_state,
    spec,
)
from support.moving_clock import MovingClock
from support.planning import (
    ALLOW,
    HOUR,
    a_planner,
    accounted,
    all_runs,
    at,
    created,
    end_all,
    scheduled,
)
from tsuzuki.model.misfire import Misfire
from tsuzuki.model.overlap import ConcurrencyPolicy
from tsuzuki.model.schedule import parse_schedule
from tsuzuki.model.states import Outcome, Reason, RunState, Trigger
from tsuzuki.store.leadership import Term
from tsuzuki.store.sql.database import Database
from tsuzuki.store.wakeups import channels
from tsuzuki.store.wakeups.channels import WakeupChannel

pytestmark = pytest.mark.usefixtures("history_is_valid")

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
    assert created(database)[1:] == [(at(1), RunState.CANCELED, Reason.OVERLAP)]
    assert read_run(database, live.id).state is state
    _, skipped = all_runs(database)
    assert (skipped.outcome, skipped.blocked_by) == (Outcome.SKIPPED, live.id)


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
    assert [reason for _, _, reason in created(database)] == [Reason.OPERATOR, Reason.OVERLAP, None]


def test_forbid_counts_up_to_the_limit_of_the_job(
    database: Database, clock: MovingClock, term: Term
) -> None:
    scheduled(database, max_concurrent=2)
    planner = a_planner(database)
    for _ in range(3):
        clock.advance(HOUR)
        planner.tick(term)
    assert [state for _, state, _ in created(database)] == [
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
    assert {state for _, state, _ in created(database)} == {RunState.PENDING}


@pytest.mark.parametrize("state", LIVE)
def test_replace_cancels_the_live_run_and_takes_its_place(
    database: Database, clock: MovingClock, term: Term, state: RunState
) -> None:
    scheduled(database, concurrency_policy=ConcurrencyPolicy.REPLACE)
    add_worker(database)
    live = run_in_state(database, state, term)
    holder = read_run(database, live.id).assigned_worker_id
    assert (holder is None) is (state is RunState.PENDING)
    clock.advance(HOUR)
    with patch.object(channels, "notify", wraps=channels.notify) as notify:
        assert a_planner(database).tick(term).created == 1
    assert [told.args[1] for told in notify.call_args_list] == [holder or WakeupChannel.LEADER]
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


@pytest.mark.parametrize("policy", [ConcurrencyPolicy.FORBID, ConcurrencyPolicy.REPLACE])
def test_a_run_that_is_to_start_later_is_not_in_the_way(
    database: Database, clock: MovingClock, term: Term, policy: ConcurrencyPolicy
) -> None:
    """Such as the one that a collector asks for at the moment when it has quota again."""
    job_id = scheduled(database, concurrency_policy=policy)
    create_run(database, job_id, scheduled_for=at(9))
    clock.advance(HOUR)
    assert a_planner(database).tick(term).created == 1
    assert created(database) == [(at(9), RunState.PENDING, None), (at(1), RunState.PENDING, None)]


def test_a_retry_that_waits_is_in_the_way(
    database: Database, clock: MovingClock, term: Term
) -> None:
    """The run that it goes on with is not finished."""
    job_id = scheduled(database)
    add_worker(database)
    failed = run_in_state(database, RunState.FAILED, term)
    create_run(
        database,
        job_id,
        trigger=Trigger.RETRY,
        scheduled_for=at(9),
        attempt=2,
        retries_used=1,
        retry_of=failed.id,
        origin_id=failed.id,
        work_key=read_run(database, failed.id).work_key,
    )
    clock.advance(HOUR)
    assert a_planner(database).tick(term).skipped == 1


MISSED: dict[ConcurrencyPolicy, list[tuple[RunState, Reason | None]]] = {
    ConcurrencyPolicy.ALLOW: [(RunState.PENDING, None)] * 3,
    ConcurrencyPolicy.FORBID: [(RunState.PENDING, None)] * 3,
    ConcurrencyPolicy.REPLACE: [
        (RunState.CANCELED, Reason.REPLACED),
        (RunState.CANCELED, Reason.REPLACED),
        (RunState.PENDING, None),
    ],
}


@pytest.mark.parametrize("policy", MISSED)
def test_all_ticks_that_were_missed_are_made_up_for_unless_a_later_one_replaces_them(
    database: Database, clock: MovingClock, term: Term, policy: ConcurrencyPolicy
) -> None:
    scheduled(
        database,
        concurrency_policy=policy,
        misfire=Misfire.ALL,
        catchup_window_seconds=10 * HOUR,
    )
    clock.advance(3 * HOUR)
    planned = a_planner(database).tick(term)
    found = sorted(created(database))
    assert [tick for tick, _, _ in found] == [at(1), at(2), at(3)]
    assert [(state, reason) for _, state, reason in found] == MISSED[policy]
    live = sum(state is RunState.PENDING for state, _ in MISSED[policy])
    assert (planned.created, planned.skipped) == (live, 3 - live)


def test_missed_ticks_are_queued_behind_a_live_run_and_later_ticks_overlap_with_them(
    database: Database, clock: MovingClock, term: Term
) -> None:
    scheduled(database, misfire=Misfire.ALL, catchup_window_seconds=10 * HOUR)
    add_worker(database)
    run_in_state(database, RunState.RUNNING, term)
    planner = a_planner(database)
    clock.advance(2.5 * HOUR)
    assert (planner.tick(term).created, len(created(database))) == (2, 3)
    clock.advance(0.5 * HOUR)
    assert planner.tick(term).skipped == 1
    assert created(database)[-1] == (at(3), RunState.CANCELED, Reason.OVERLAP)


def test_a_tick_on_time_is_not_skipped_for_those_that_were_missed_before_it(
    database: Database, clock: MovingClock, term: Term
) -> None:
    scheduled(database, misfire=Misfire.ALL, catchup_window_seconds=10 * HOUR)
    clock.advance(3 * HOUR)
    assert a_planner(database).tick(term).created == 3


@pytest.mark.parametrize("has_live", [False, True])
def test_ticks_that_come_due_together_are_queued_however_late_they_are(
    database: Database, clock: MovingClock, term: Term, has_live: bool
) -> None:
    scheduled(database, parse_schedule("every 10s"), misfire=Misfire.ALL)
    add_worker(database)
    if has_live:
        run_in_state(database, RunState.RUNNING, term)
    planner = a_planner(database)
    clock.advance(45)
    planned = planner.tick(term)
    assert (planned.created, planned.skipped) == (4, 0)
    clock.advance(5)
    planned = planner.tick(term)
    assert (planned.created, planned.skipped) == (0, 1)
    due = [at(seconds / HOUR) for seconds in (10, 20, 30, 40, 50)]
    assert accounted(all_runs(database)) == due
    assert created(database)[-1] == (due[-1], RunState.CANCELED, Reason.OVERLAP)


def test_a_tick_on_time_overlaps_with_a_live_run_also_when_all_missed_ones_are_made_up_for(
    database: Database, clock: MovingClock, term: Term
) -> None:
    scheduled(database, parse_schedule("every 10s"), misfire=Misfire.ALL)
    add_worker(database)
    run_in_state(database, RunState.RUNNING, term)
    planner = a_planner(database)
    for _ in range(3):
        clock.advance(10)
        assert planner.tick(term).created == 0
    assert [reason for _, _, reason in created(database)[1:]] == [Reason.OVERLAP] * 3


def test_the_last_of_more_missed_ticks_than_one_planning_takes_is_queued_too(
    database: Database, clock: MovingClock, term: Term
) -> None:
    scheduled(database, parse_schedule("every 10s"), misfire=Misfire.ALL)
    planner = a_planner(database)
    clock.advance(10 * 1001)
    planned = planner.tick(term)
    while planned.more:
        planned = planner.tick(term)
    found = created(database)
    assert len(found) == 1001
    assert {state for _, state, _ in found} == {RunState.PENDING}
