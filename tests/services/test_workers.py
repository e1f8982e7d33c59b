"""Who works and who leads, and telling them to stop: every order is recorded."""

from datetime import timedelta

import pytest

from support.factories import WORKER, add_worker, run_in_state, take_lead
from support.moving_clock import MovingClock
from tsuzuki.model.errors import Conflict, NotFound
from tsuzuki.model.states import RunState
from tsuzuki.model.worker import DetachReason, WorkerState
from tsuzuki.services.workers import Workers
from tsuzuki.store import audit, leadership, workers
from tsuzuki.store.audit import AuditEntry
from tsuzuki.store.sql.database import Database


@pytest.fixture
def service(database: Database) -> Workers:
    return Workers(database=database, actor="ada")


def audited(database: Database) -> list[AuditEntry]:
    with database.read() as connection:
        return audit.find(connection)


def test_workers_are_shown_with_what_they_hold_and_how_long_they_have_been_silent(
    database: Database, clock: MovingClock, service: Workers
) -> None:
    assert service.workers() == []
    add_worker(database, tags=frozenset({"b", "a"}))
    add_worker(database, "leader", capacity=1)
    term = take_lead(database, "leader")
    for state in (RunState.RUNNING, RunState.ASSIGNED, RunState.SUCCEEDED, RunState.PENDING):
        run_in_state(database, state, term)
    clock.advance(2.5)
    with database.write() as connection:
        workers.heartbeat(connection, "leader")
    first, second = service.workers()
    assert (first.worker.id, first.held, first.silent_seconds, first.leads) == (
        WORKER,
        2,
        2.5,
        False,
    )
    assert (second.worker.id, second.held, second.silent_seconds, second.leads) == (
        "leader",
        0,
        0.0,
        True,
    )
    shown = first.as_dict()
    assert (shown["tags"], shown["held"], shown["silent_seconds"]) == (["a", "b"], 2, 2.5)


def test_of_a_heartbeat_from_the_future_the_age_is_unknown(
    database: Database, clock: MovingClock, service: Workers
) -> None:
    add_worker(database)
    clock.step(-3600)
    (view,) = service.workers()
    assert view.silent_seconds is None
    assert view.as_dict()["silent_seconds"] is None


def test_workers_that_are_gone_are_shown_only_if_asked_for(
    database: Database, service: Workers
) -> None:
    add_worker(database)
    with database.write() as connection:
        workers.deregister(connection, WORKER)
    assert service.workers() == []
    assert [view.worker.state for view in service.workers(with_gone=True)] == [WorkerState.GONE]


def test_a_leader_whose_lease_ran_out_does_not_lead(
    database: Database, clock: MovingClock, service: Workers
) -> None:
    add_worker(database, "leader")
    take_lead(database, "leader", lease_seconds=5)
    assert service.leader().is_valid
    clock.advance(5)
    assert not service.leader().is_valid
    assert not service.workers()[0].leads


def test_the_age_of_a_lease_is_told_also_when_it_has_run_out(
    database: Database, clock: MovingClock, service: Workers
) -> None:
    assert service.lease() is None
    add_worker(database, "leader")
    take_lead(database, "leader", lease_seconds=5)
    for passed in (0, 2, 7):
        clock.advance(passed)
        lease = service.lease()
        assert lease
        assert lease.age_seconds + lease.left_seconds == pytest.approx(5)
    assert (lease.age_seconds, lease.is_valid) == (pytest.approx(9, abs=0.5), False)
    service.step_down()
    assert service.lease() is None


def test_a_lease_that_lasts_longer_than_it_was_taken_for_is_not_valid(
    database: Database, clock: MovingClock, service: Workers
) -> None:
    add_worker(database, "leader")
    take_lead(database, "leader", lease_seconds=5)
    clock.step(-3600)
    assert not service.leader().is_valid


def test_draining_is_told_once_and_recorded(database: Database, service: Workers) -> None:
    add_worker(database)
    service.drain(WORKER)
    assert service.workers()[0].worker.state is WorkerState.DRAINING
    (entry,) = audited(database)
    assert (entry.actor, entry.action, entry.object_type, entry.object_id) == (
        "ada",
        "worker.drain",
        "worker",
        WORKER,
    )
    assert (entry.before, entry.after) == ({"state": "ATTACHED"}, {"state": "DRAINING"})
    with pytest.raises(Conflict, match="is DRAINING"):
        service.drain(WORKER)
    assert len(audited(database)) == 1


@pytest.mark.parametrize("before", [WorkerState.ATTACHED, WorkerState.DRAINING])
def test_detaching_is_told_once_and_recorded(
    database: Database, service: Workers, before: WorkerState
) -> None:
    add_worker(database)
    if before is WorkerState.DRAINING:
        with database.write() as connection:
            workers.drain(connection, [WORKER])
    service.detach(WORKER)
    worker = service.workers()[0].worker
    assert (worker.state, worker.detach_reason) == (WorkerState.DETACHED, DetachReason.OPERATOR)
    (entry,) = audited(database)
    assert (entry.action, entry.before, entry.after) == (
        "worker.detach",
        {"state": before},
        {"state": "DETACHED"},
    )
    with pytest.raises(Conflict, match="is DETACHED"):
        service.detach(WORKER)
    with pytest.raises(Conflict, match="is DETACHED"):
        service.drain(WORKER)
    assert len(audited(database)) == 1


def test_a_worker_that_was_only_silent_can_be_detached_for_good(
    database: Database, clock: MovingClock, service: Workers
) -> None:
    add_worker(database)
    clock.advance(10)
    with database.write() as connection:
        term = leadership.take(connection, holder="l", lease_seconds=10)
        assert term is not None
        workers.detach_silent(connection, term=term, silent_after_seconds=5)
    service.detach(WORKER)
    assert service.workers()[0].worker.detach_reason is DetachReason.OPERATOR


def test_a_worker_that_is_gone_takes_no_orders(database: Database, service: Workers) -> None:
    add_worker(database)
    with database.write() as connection:
        workers.deregister(connection, WORKER)
    for order in (service.drain, service.detach):
        with pytest.raises(Conflict, match="is GONE"):
            order(WORKER)
    assert audited(database) == []


def test_an_unknown_worker_is_answered_with_the_nearest_one(
    database: Database, service: Workers
) -> None:
    add_worker(database)
    for order in (service.drain, service.detach):
        with pytest.raises(NotFound) as caught:
            order("host-1-aaab")
        assert WORKER in str(caught.value.hint)


def test_a_leader_is_told_to_step_down_once_and_it_is_recorded(
    database: Database, service: Workers
) -> None:
    take_lead(database, "leader")
    before = service.step_down()
    assert (before.holder, before.epoch) == ("leader", 1)
    assert service.leader().holder is None
    (entry,) = audited(database)
    assert (entry.actor, entry.action, entry.object_type, entry.object_id) == (
        "ada",
        "leader.step_down",
        "leader",
        "1",
    )
    assert entry.before == {"holder": "leader", "epoch": 1}
    with pytest.raises(Conflict, match="there is no leader"):
        service.step_down()
    assert len(audited(database)) == 1
    assert take_lead(database, "next").epoch == 2


def test_where_no_process_ever_led_none_steps_down(database: Database, service: Workers) -> None:
    with pytest.raises(Conflict, match="there is no leader"):
        service.step_down()
    assert audited(database) == []


def test_the_status_tells_who_is_not_heard_and_what_waits_to_be_confirmed(
    database: Database, clock: MovingClock, service: Workers
) -> None:
    assert not service.status().is_led
    add_worker(database)
    term = take_lead(database, "leader")
    run_in_state(database, RunState.RUNNING, term)
    with database.write() as connection:
        workers.request_confirmation(connection, worker_id=WORKER, deadline_seconds=30.0)
    deadline_at = clock.now() + timedelta(seconds=30)
    status = service.status()
    assert [tuple(waiting) for waiting in status.confirming] == [(WORKER, 1, deadline_at)]
    assert [view.worker.id for view in status.usable] == [WORKER]
    assert (status.leadership.epoch, status.slots) == (term.epoch, status.usable[0].worker.capacity)
    clock.advance(status.silent_after_seconds)
    silent = service.status()
    assert silent.usable == []
    assert silent.is_silent(silent.workers[0])
    assert [past.epoch for past in service.past_terms(limit=5)] == [term.epoch]
    with pytest.raises(NotFound):
        service.get("nothing")
