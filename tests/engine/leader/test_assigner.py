"""The assigner: due runs go to workers, the most urgent first, within all limits, and once in every race."""

from datetime import timedelta
from typing import Any

import pytest

from support.assigning import (
    ALLOW,
    add_free_job,
    an_assigner,
    assigned_ids,
    assigned_runs,
    create_runs,
)
from support.factories import (
    add_job,
    add_worker,
    create_run,
    depose_and_take,
    lose_last_change,
    make_schedule_unreadable,
    new_run,
    read_run,
    ref,
    run_in_state,
    spec,
)
from support.leader_and_worker import LeaderAndWorker
from support.moving_clock import NOON, MovingClock
from support.rescuing import heartbeat
from support.statement_recorder import recorded
from support.unreliable_database import UnreliableDatabase
from tsuzuki.engine.leader.assigner import BATCH_MAX, BATCH_SHARED_MAX
from tsuzuki.model.errors import Unreachable
from tsuzuki.model.job import JobSource
from tsuzuki.model.overlap import ConcurrencyPolicy
from tsuzuki.model.settings import EngineSettings
from tsuzuki.model.states import RunState
from tsuzuki.services import job_changes
from tsuzuki.store import jobs, workers
from tsuzuki.store.leadership import Term
from tsuzuki.store.runs import moves, runs
from tsuzuki.store.runs.moves import Reason
from tsuzuki.store.sql.database import Database

pytestmark = pytest.mark.usefixtures("history_is_valid")


# --- which worker ---------------------------------------------------------------------------------


def test_a_due_run_is_assigned_to_a_worker(
    database: Database, clock: MovingClock, term: Term
) -> None:
    add_worker(database, "w")
    run_id = create_run(database, add_free_job(database)).id
    clock.advance(3)
    assert an_assigner(database).tick(term) == 1
    run = read_run(database, run_id)
    assert (run.state, run.assigned_worker_id) == (RunState.ASSIGNED, "w")
    assert run.assigned_at == NOON + timedelta(seconds=3)
    assert (run.attempt, run.version) == (1, 2)
    assert an_assigner(database).tick(term) == 0


@pytest.mark.parametrize("leaves", ["drain", "detach", "deregister", "silence"])
def test_a_worker_that_drains_or_is_detached_or_gone_gets_nothing(
    database: Database, clock: MovingClock, term: Term, leaves: str
) -> None:
    add_worker(database, "leaving", capacity=100)
    clock.advance(6)
    with database.write() as connection:
        match leaves:
            case "drain":
                workers.drain(connection, ["leaving"])
            case "detach":
                workers.detach(connection, ["leaving"])
            case "deregister":
                workers.deregister(connection, "leaving")
            case "silence":
                workers.detach_silent(connection, term=term, silent_after_seconds=6)
    add_worker(database, "staying", capacity=1)
    create_runs(database, add_free_job(database), 3)
    assert an_assigner(database).tick(term) == 1
    assert [run.assigned_worker_id for run in assigned_runs(database)] == ["staying"]


def test_a_worker_that_drains_between_the_read_and_the_write_gets_nothing(
    database: Database, term: Term
) -> None:
    add_worker(database, "w")
    run_id = create_run(database, add_free_job(database)).id

    class LateDatabase(UnreliableDatabase):
        def write(self) -> Any:
            with database.write() as connection:
                workers.drain(connection, ["w"])
            return super().write()

    assert an_assigner(LateDatabase(database)).tick(term) == 0
    assert read_run(database, run_id).state is RunState.PENDING


@pytest.mark.parametrize("first", [False, True])
def test_a_job_that_lost_a_change_is_assigned_as_it_is_now(
    database: Database, term: Term, first: bool
) -> None:
    add_worker(database, "w")
    job_id = add_free_job(database)
    create_run(database, job_id)
    assigner = an_assigner(database)
    assert assigner.tick(term) == 1
    lose_last_change(database, job_id, enabled=False)
    create_run(database, job_id)
    assert (assigner.assign_first(term) if first else assigner.tick(term)) == 0


def test_runs_of_a_removed_job_count_when_it_is_added_again(database: Database, term: Term) -> None:
    add_worker(database, "w", capacity=5)
    job_id = add_job(database, spec(max_concurrent=1))
    running, waiting = create_run(database, job_id), create_run(database, job_id)
    assigner = an_assigner(database)
    assert assigner.tick(term) == 1
    with database.write() as connection:
        job_changes.remove(connection, "hello", actor="ada")
    assert assigner.tick(term) == 0
    again = add_job(database, spec(max_concurrent=1))
    create_run(database, again)
    assert assigner.tick(term) == 0
    with database.write() as connection:
        moves.cancel(connection, operator="ada", runs=[read_run(database, running.id).ref])
    assert assigner.tick(term) == 1
    assert read_run(database, waiting.id).state is RunState.ASSIGNED


# --- in which order -------------------------------------------------------------------------------


def test_the_order_is_priority_then_time_then_age(
    database: Database, clock: MovingClock, term: Term
) -> None:
    job_id = add_free_job(database)
    earlier = NOON - timedelta(minutes=1)
    last = create_run(database, job_id, priority=-5, scheduled_for=earlier).id
    fourth = create_run(database, job_id).id
    fifth = create_run(database, job_id).id
    third = create_run(database, job_id, scheduled_for=earlier).id
    second = create_run(database, job_id, priority=9).id
    first = create_run(database, job_id, priority=9, scheduled_for=earlier).id
    assigner, order = an_assigner(database), []
    for number in range(6):
        add_worker(database, f"w{number}", capacity=1)
        assert assigner.tick(term) == 1
        order += [run_id for run_id in assigned_ids(database) if run_id not in order]
    assert order == [first, second, third, fourth, fifth, last]


def test_a_run_is_not_assigned_before_its_time(
    database: Database, clock: MovingClock, term: Term
) -> None:
    add_worker(database)
    soon = NOON + timedelta(seconds=10)
    run_id = create_run(database, add_free_job(database), scheduled_for=soon, priority=999).id
    assigner = an_assigner(database)
    clock.advance(9.999)
    heartbeat(database)
    assert assigner.tick(term) == 0
    clock.advance(0.001)
    assert assigner.tick(term) == 1
    assert assigned_ids(database) == [run_id]


def test_a_worker_that_was_not_heard_for_two_heartbeats_gets_nothing_new(
    database: Database, clock: MovingClock, term: Term
) -> None:
    """It is attached for some seconds more, and what it got would wait for it in vain."""
    add_worker(database, "dead")
    clock.advance(2 * EngineSettings.heartbeat_interval_seconds)
    run_id = create_run(database, add_free_job(database)).id
    assert an_assigner(database).tick(term) == 0
    add_worker(database, "live")
    create_runs(database, add_free_job(database, "more"), 3)
    assert an_assigner(database).tick(term) == 4
    assert {run.assigned_worker_id for run in assigned_runs(database)} == {"live"}
    assert read_run(database, run_id).orphan_count == 0


def test_the_first_run_of_an_idle_leader_goes_to_a_worker_that_was_heard(
    pair: LeaderAndWorker,
) -> None:
    pair.learn_job()
    run = pair.submit()
    pair.clock.advance(2 * EngineSettings.heartbeat_interval_seconds)
    assert pair.assigner.assign_first(pair.term) == 0
    heartbeat(pair.database)
    assert pair.assigner.assign_first(pair.term) == 1
    assert pair.state(run.id) is RunState.RUNNING


def test_an_orphan_is_assigned_again_as_a_further_attempt(database: Database, term: Term) -> None:
    add_worker(database)
    orphan = run_in_state(database, RunState.ORPHANED, term)
    assert an_assigner(database).tick(term) == 1
    run = read_run(database, orphan.id)
    assert (run.state, run.attempt, run.orphan_count, run.reason) == (
        RunState.ASSIGNED,
        2,
        1,
        None,
    )


# --- what is blocked hides nothing ----------------------------------------------------------------


def test_ten_thousand_runs_of_a_job_at_its_limit_do_not_hide_another(
    database: Database, term: Term
) -> None:
    add_worker(database, "w", capacity=5)
    create_runs(database, add_job(database, spec("limited")), 10_000, priority=5)
    other = create_run(database, add_free_job(database, "other")).id
    assert an_assigner(database).tick(term) == 2
    assert other in assigned_ids(database)


def test_a_thousand_runs_of_a_key_at_its_limit_do_not_hide_another(
    database: Database, term: Term
) -> None:
    add_worker(database, "w", capacity=5)
    job_id = add_free_job(database, concurrency_key="k", max_concurrent_per_key=1)
    create_runs(database, job_id, 1000, concurrency_key="same", priority=5)
    other = create_run(database, job_id, concurrency_key="other").id
    assert an_assigner(database).tick(term) == 2
    assert other in assigned_ids(database)


@pytest.mark.parametrize("why", ["off", "tags", "limit"])
def test_a_hundred_blocked_jobs_do_not_hide_another_though_one_slot_is_free(
    database: Database, term: Term, why: str
) -> None:
    add_worker(database, "full", capacity=100)
    blocked = {
        "off": {"enabled": False},
        "tags": {"tags": frozenset({"gpu"})},
        "limit": {"concurrency_policy": ConcurrencyPolicy.FORBID},
    }[why]
    assigner = an_assigner(database)
    names = [f"blocked-{n}" for n in range(100)]
    with database.write() as connection:
        for job in (spec(name, **{"concurrency_policy": ALLOW, **blocked}) for name in names):
            job_id = jobs.add(connection, job, source=JobSource.DATABASE)
            runs.create(connection, [new_run(database, job_id, priority=5)] * 2)
    assert assigner.tick(term) == (100 if why == "limit" else 0)
    add_worker(database, "free", capacity=1)
    with database.write() as connection:
        workers.drain(connection, ["full"])
    other = create_run(database, add_free_job(database, "other")).id
    assert assigner.tick(term) == 1
    assert read_run(database, other).assigned_worker_id == "free"


# --- how ------------------------------------------------------------------------------------------


def test_a_round_assigns_everything_in_one_statement(database: Database, term: Term) -> None:
    for number in range(3):
        add_worker(database, f"w{number}", capacity=50)
    create_runs(database, add_free_job(database, "a"), 60, priority=1)
    create_runs(database, add_job(database, spec("b", max_concurrent=5)), 60)
    create_runs(database, add_free_job(database, "c"), 60)
    with recorded(database) as sent:
        assert an_assigner(database).tick(term) == 125
    assert len([s for s in sent if "UPDATE tsuzuki_job_runs" in s]) == 1


def test_one_round_assigns_a_bounded_number(database: Database, term: Term) -> None:
    batch = BATCH_MAX if database.is_sqlite else BATCH_SHARED_MAX
    add_worker(database, "w", capacity=batch * 3)
    create_runs(database, add_free_job(database), batch + 7)
    assigner = an_assigner(database)
    assert [assigner.tick(term) for _ in range(3)] == [batch, 7, 0]


def test_with_nothing_due_a_round_is_one_query(database: Database, term: Term) -> None:
    add_worker(database)
    with recorded(database) as sent:
        assert an_assigner(database).tick(term) == 0
    assert len(sent) == 1


def test_a_deposed_assigner_assigns_nothing(database: Database, term: Term) -> None:
    add_worker(database)
    run_id = create_run(database, add_free_job(database)).id
    new_term = depose_and_take(database)
    assert an_assigner(database).tick(term) == 0
    assert read_run(database, run_id).version == 1
    assert an_assigner(database).tick(new_term) == 1


def test_of_two_leaders_that_chose_the_same_run_one_assigns_it(
    database: Database, term: Term
) -> None:
    add_worker(database, "w", capacity=10)
    ids = create_runs(database, add_job(database, spec(max_concurrent=2)), 4)

    class OvertakenDatabase(UnreliableDatabase):
        def write(self) -> Any:
            assert an_assigner(database).tick(depose_and_take(database)) == 2
            return super().write()

    assert an_assigner(OvertakenDatabase(database)).tick(term) == 0
    assert assigned_ids(database) == ids[:2]


def test_a_run_canceled_between_the_read_and_the_write_stays_canceled(
    database: Database, term: Term
) -> None:
    add_worker(database)
    canceled, other = create_runs(database, add_free_job(database), 2)

    class LateDatabase(UnreliableDatabase):
        def write(self) -> Any:
            with database.write() as connection:
                moves.cancel(connection, operator="me", runs=[ref(database, canceled)])
            return super().write()

    assert an_assigner(LateDatabase(database)).tick(term) == 1
    assert assigned_ids(database) == [other]
    assert read_run(database, canceled).reason is Reason.OPERATOR


def test_an_assignment_whose_reply_was_lost_is_not_made_twice(
    database: Database, term: Term
) -> None:
    add_worker(database, "w", capacity=10)
    ids = create_runs(database, add_job(database, spec(max_concurrent=2)), 4)
    unreliable = UnreliableDatabase(database)
    assigner = an_assigner(unreliable)
    unreliable.replies_to_lose = 1
    with pytest.raises(Unreachable):
        assigner.tick(term)
    assert assigner.tick(term) == 0
    assert assigned_ids(database) == ids[:2]
    assert {run.version for run in assigned_runs(database)} == {2}


def test_runs_of_a_job_whose_schedule_cannot_be_read_here_are_assigned_with_the_others(
    database: Database, term: Term
) -> None:
    add_worker(database, "w")
    unreadable = add_free_job(database)
    runs_of_both = [
        create_run(database, unreadable).id,
        create_run(database, add_job(database, spec("other"))).id,
    ]
    make_schedule_unreadable(database, unreadable)
    assert an_assigner(database).tick(term) == 2
    assert {read_run(database, run_id).state for run_id in runs_of_both} == {RunState.ASSIGNED}
