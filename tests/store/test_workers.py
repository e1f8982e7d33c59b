"""Workers: attached, draining, detached, gone, and the confirmation of their runs."""

from datetime import datetime, timedelta

import pytest
from sqlalchemy.exc import IntegrityError

from support.factories import WORKER, add_worker, read_run, run_in_state, take_lead
from support.moving_clock import MovingClock
from support.query_plans import last_sent
from tsuzuki.model.states import ContinuationState, RunState
from tsuzuki.model.worker import DetachReason, StoredWorker, WorkerState
from tsuzuki.store import workers
from tsuzuki.store.leadership import Term
from tsuzuki.store.sql.database import Database

OTHER = "host-2-bbbb"
TTL = 6.0


@pytest.fixture
def term(database: Database) -> Term:
    return take_lead(database)


def get(database: Database, worker_id: str = WORKER) -> StoredWorker:
    with database.read() as connection:
        worker = workers.get(connection, worker_id)
    assert worker is not None
    return worker


def beat(database: Database, worker_id: str = WORKER) -> WorkerState | None:
    with database.write() as connection:
        return workers.heartbeat(connection, worker_id)


def detach_silent(database: Database, term: Term) -> frozenset[str]:
    with database.write() as connection:
        return workers.detach_silent(connection, term=term, silent_after_seconds=TTL)


def reattach_and_confirm(database: Database, term: Term) -> frozenset[str]:
    with database.write() as connection:
        return workers.reattach_and_confirm(connection, term=term, silent_after_seconds=TTL)


def mark_silent_gone(database: Database, term: Term, seconds: float = 60.0) -> frozenset[str]:
    with database.write() as connection:
        return workers.mark_silent_gone(connection, term=term, silent_after_seconds=seconds)


def request_confirmation(database: Database, deadline_seconds: float = 5.0) -> int:
    with database.write() as connection:
        return workers.request_confirmation(
            connection, worker_id=WORKER, deadline_seconds=deadline_seconds
        )


def test_a_worker_is_stored_as_it_introduces_itself(database: Database, clock: MovingClock) -> None:
    add_worker(database, capacity=3, tags=frozenset({"gpu", "eu"}))
    assert get(database) == StoredWorker(
        id=WORKER,
        host="host",
        pid=1,
        state=WorkerState.ATTACHED,
        detach_reason=None,
        capacity=3,
        tags=frozenset({"gpu", "eu"}),
        software_version="test",
        started_at=clock.now(),
        heartbeat_at=clock.now(),
    )


def test_an_id_is_used_once(database: Database) -> None:
    add_worker(database)
    with database.write() as connection:
        assert workers.deregister(connection, WORKER)
    with pytest.raises(IntegrityError):
        add_worker(database)


def test_a_heartbeat_is_stored_and_answers_the_state_of_the_worker(
    database: Database, clock: MovingClock
) -> None:
    add_worker(database)
    clock.advance(2)
    assert beat(database) is WorkerState.ATTACHED
    assert get(database).heartbeat_at == clock.now()
    with database.write() as connection:
        workers.drain(connection, [WORKER])
    assert beat(database) is WorkerState.DRAINING
    with database.write() as connection:
        workers.detach(connection, [WORKER])
    assert beat(database) is WorkerState.DETACHED
    with database.write() as connection:
        workers.deregister(connection, WORKER)
    clock.advance(2)
    before = get(database)
    assert beat(database) is None
    assert get(database) == before
    assert beat(database, "unknown") is None


def test_a_leader_refreshes_heartbeats_of_present_workers_and_only_forward(
    database: Database, clock: MovingClock, term: Term
) -> None:
    ids = [add_worker(database, f"host-{n}") for n in range(4)]
    with database.write() as connection:
        workers.drain(connection, [ids[1]])
        workers.detach(connection, [ids[2]])
        workers.deregister(connection, ids[3])
    sent_at = clock.now() + timedelta(seconds=3)

    def refresh(worker_ids: list[str], moment: datetime) -> frozenset[str]:
        with database.write() as connection:
            return workers.refresh_heartbeats(
                connection, term=term, worker_ids=worker_ids, sent_at=moment
            )

    assert refresh([*ids, "unknown"], sent_at) == set(ids[:2])
    assert [get(database, i).heartbeat_at == sent_at for i in ids] == [True, True, False, False]
    assert refresh(ids, sent_at - timedelta(seconds=1)) == frozenset()
    assert refresh([], sent_at) == frozenset()
    assert get(database, ids[0]).heartbeat_at == sent_at


def test_only_attached_workers_are_drained(database: Database) -> None:
    ids = [add_worker(database, f"host-{n}") for n in range(4)]
    with database.write() as connection:
        workers.detach(connection, [ids[1]])
        workers.deregister(connection, ids[2])
        workers.drain(connection, [ids[3]])
        assert workers.drain(connection, [*ids, "unknown"]) == {ids[0]}
        assert workers.drain(connection, []) == frozenset()
    states = [get(database, worker_id).state for worker_id in ids]
    assert states == ["DRAINING", "DETACHED", "GONE", "DRAINING"]


def test_a_worker_that_is_drained_while_it_is_silent_drains_when_it_is_heard_again(
    database: Database, clock: MovingClock
) -> None:
    term = take_lead(database, lease_seconds=1000)
    add_worker(database)
    clock.advance(6)
    with database.write() as connection:
        assert workers.detach_silent(connection, term=term, silent_after_seconds=6)
        assert workers.drain(connection, [WORKER]) == {WORKER}
        assert workers.drain(connection, [WORKER]) == frozenset()
        assert workers.heartbeat(connection, WORKER) is WorkerState.DETACHED
        assert workers.reattach_and_confirm(connection, term=term, silent_after_seconds=6)
    assert get(database).state is WorkerState.DRAINING
    assert get(database).drain_ordered_at == clock.now()


def test_an_operator_detaches_any_registered_worker(database: Database) -> None:
    ids = [add_worker(database, f"host-{n}") for n in range(3)]
    with database.write() as connection:
        workers.drain(connection, [ids[1]])
        workers.deregister(connection, ids[2])
        assert workers.detach(connection, ids) == set(ids[:2])
        assert workers.detach(connection, ids) == frozenset()
    assert get(database, ids[0]).detach_reason is DetachReason.OPERATOR


def test_silence_of_the_ttl_cuts_off_and_not_a_moment_less(
    database: Database, clock: MovingClock, term: Term
) -> None:
    add_worker(database)
    clock.advance(TTL - 0.001)
    assert detach_silent(database, term) == frozenset()
    clock.advance(0.001)
    assert detach_silent(database, term) == {WORKER}
    found = get(database)
    assert (found.state, found.detach_reason) == (WorkerState.DETACHED, DetachReason.SILENT)
    assert detach_silent(database, term) == frozenset()


def test_silence_cuts_off_only_who_is_silent(
    database: Database, clock: MovingClock, term: Term
) -> None:
    add_worker(database)
    add_worker(database, OTHER)
    clock.advance(TTL)
    beat(database, OTHER)
    assert detach_silent(database, term) == {WORKER}


def test_who_was_only_silent_comes_back_when_it_speaks(
    database: Database, clock: MovingClock, term: Term
) -> None:
    add_worker(database)
    clock.advance(TTL)
    detach_silent(database, term)
    assert reattach_and_confirm(database, term) == frozenset()
    assert beat(database) is WorkerState.DETACHED
    assert reattach_and_confirm(database, term) == {WORKER}
    found = get(database)
    assert (found.state, found.detach_reason) == (WorkerState.ATTACHED, None)


def test_a_worker_detached_by_an_operator_is_not_re_attached(
    database: Database, clock: MovingClock, term: Term
) -> None:
    add_worker(database)
    clock.advance(TTL)
    detach_silent(database, term)
    with database.write() as connection:
        assert workers.detach(connection, [WORKER]) == {WORKER}
    beat(database)
    assert reattach_and_confirm(database, term) == frozenset()
    assert get(database).detach_reason is DetachReason.OPERATOR


def test_a_worker_in_doubt_asks_for_all_it_runs(
    database: Database, clock: MovingClock, term: Term
) -> None:
    add_worker(database)
    add_worker(database, OTHER)
    mine = [run_in_state(database, RunState.RUNNING, term) for _ in range(3)]
    others = run_in_state(database, RunState.RUNNING, term, OTHER)
    assigned = run_in_state(database, RunState.ASSIGNED, term)
    assert request_confirmation(database) == 3
    deadline = clock.now() + timedelta(seconds=5)
    for run in mine:
        found = read_run(database, run.id)
        assert found.continuation_state is ContinuationState.CONFIRMING
        assert found.continuation_check_deadline_at == deadline
        assert found.version == run.version
    for run in (others, assigned):
        assert read_run(database, run.id).continuation_state is ContinuationState.NONE


def test_asking_again_does_not_move_the_deadline(
    database: Database, clock: MovingClock, term: Term
) -> None:
    add_worker(database)
    run = run_in_state(database, RunState.RUNNING, term)
    request_confirmation(database)
    deadline = read_run(database, run.id).continuation_check_deadline_at
    clock.advance(3)
    assert request_confirmation(database) == 0
    assert read_run(database, run.id).continuation_check_deadline_at == deadline


def test_a_worker_that_sends_a_heartbeat_in_time_is_confirmed(
    database: Database, clock: MovingClock, term: Term
) -> None:
    add_worker(database)
    run = run_in_state(database, RunState.RUNNING, term)
    clock.advance(TTL)
    detach_silent(database, term)
    request_confirmation(database)
    beat(database)
    assert reattach_and_confirm(database, term) == {WORKER}
    found = read_run(database, run.id)
    assert found.continuation_state is ContinuationState.NONE
    assert found.continuation_check_deadline_at is None
    assert (found.state, found.version) == (RunState.RUNNING, run.version)


def test_a_worker_that_was_never_detached_is_confirmed_too(
    database: Database, clock: MovingClock, term: Term
) -> None:
    add_worker(database)
    run = run_in_state(database, RunState.RUNNING, term)
    request_confirmation(database)
    assert reattach_and_confirm(database, term) == frozenset()
    assert read_run(database, run.id).continuation_state is ContinuationState.NONE


def test_after_the_deadline_nothing_is_confirmed(
    database: Database, clock: MovingClock, term: Term
) -> None:
    add_worker(database)
    run = run_in_state(database, RunState.RUNNING, term)
    request_confirmation(database, 5)
    clock.advance(5)
    beat(database)
    reattach_and_confirm(database, term)
    assert read_run(database, run.id).continuation_state is ContinuationState.CONFIRMING


@pytest.mark.parametrize("why", ["silent", "by an operator"])
def test_a_worker_that_stays_detached_is_not_confirmed(
    database: Database, clock: MovingClock, term: Term, why: str
) -> None:
    add_worker(database)
    run = run_in_state(database, RunState.RUNNING, term)
    clock.advance(TTL)
    detach_silent(database, term)
    request_confirmation(database, 60)
    if why == "by an operator":
        with database.write() as connection:
            workers.detach(connection, [WORKER])
        beat(database)
    reattach_and_confirm(database, term)
    assert read_run(database, run.id).continuation_state is ContinuationState.CONFIRMING


def test_a_worker_that_deregistered_is_gone_for_good(
    database: Database, clock: MovingClock, term: Term
) -> None:
    add_worker(database)
    with database.write() as connection:
        assert workers.deregister(connection, WORKER)
        assert not workers.deregister(connection, WORKER)
        assert not workers.deregister(connection, "unknown")
    clock.advance(1000)
    assert detach_silent(database, term) == frozenset()
    assert reattach_and_confirm(database, term) == frozenset()
    assert get(database).state is WorkerState.GONE


def test_silent_workers_are_marked_gone_when_they_hold_no_run(
    database: Database, clock: MovingClock, term: Term
) -> None:
    ids = [add_worker(database, f"host-{n}") for n in range(3)]
    run_in_state(database, RunState.ASSIGNED, term, ids[1])
    run_in_state(database, RunState.RUNNING, term, ids[2])
    run_in_state(database, RunState.SUCCEEDED, term, ids[0])
    clock.advance(59.999)
    detach_silent(database, term)
    assert mark_silent_gone(database, term) == frozenset()
    clock.advance(0.001)
    assert mark_silent_gone(database, term) == {ids[0]}
    assert get(database, ids[0]).state is WorkerState.GONE


def test_an_attached_worker_is_not_marked_gone(
    database: Database, clock: MovingClock, term: Term
) -> None:
    add_worker(database)
    clock.advance(1000)
    assert mark_silent_gone(database, term) == frozenset()


def test_workers_are_listed_in_the_order_they_came(database: Database, clock: MovingClock) -> None:
    for name in ("c", "a", "b"):
        add_worker(database, name)
        clock.advance(1)
    with database.write() as connection:
        workers.deregister(connection, "a")
    with database.read() as connection:
        assert [worker.id for worker in workers.find(connection)] == ["c", "b"]
        everyone = workers.find(connection, with_gone=True)
        assert [worker.id for worker in everyone] == ["c", "a", "b"]
        assert workers.get(connection, "unknown") is None


def test_runs_are_marked_and_confirmed_by_id_version_and_state(
    database: Database, term: Term
) -> None:
    with database.write() as connection, last_sent(connection) as sent:
        workers.request_confirmation(connection, worker_id=WORKER, deadline_seconds=5)
        workers.reattach_and_confirm(connection, term=term, silent_after_seconds=TTL)
    updates = [one.statement for one in sent if one.statement.startswith("UPDATE tsuzuki_job_runs")]
    assert len(updates) == 2
    for update in updates:
        _, _, condition = update.partition("WHERE")
        assert "(tsuzuki_job_runs.id, tsuzuki_job_runs.version) IN (SELECT" in condition
        assert "tsuzuki_job_runs.state = 'RUNNING'" in condition
