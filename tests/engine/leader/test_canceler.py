"""A cancel that was requested while a handler held the row is carried out when the row is free."""

from random import Random

import pytest
from sqlalchemy import text

from support.dialects import only_on_postgresql
from support.factories import add_worker, read_run, run_in_state, take_lead
from support.history_checker import check_history
from tsuzuki.engine.coordination.protocol import NoCoordination
from tsuzuki.engine.leader.canceler import Canceler
from tsuzuki.engine.leader.leader import CANCEL_INTERVAL_SECONDS, Leader
from tsuzuki.model.run import new_retry
from tsuzuki.model.settings import EngineSettings
from tsuzuki.model.states import Reason, RunState
from tsuzuki.services.runs import Runs
from tsuzuki.store.leadership import Term
from tsuzuki.store.runs import cancel_requests, runs
from tsuzuki.store.sql.database import Database


@pytest.fixture
def term(database: Database) -> Term:
    add_worker(database)
    return take_lead(database, lease_seconds=100_000)


@pytest.fixture
def run_service(database: Database) -> Runs:
    return Runs(database=database, actor="ada")


def request(database: Database, run_id: int, reason: Reason = Reason.OPERATOR) -> None:
    with database.write() as connection:
        cancel_requests.add(connection, [run_id], reason=reason, requested_by="ada")


def requested(database: Database) -> list[int]:
    with database.read() as connection:
        return [one.run_id for one in cancel_requests.page(connection, limit=10)]


@only_on_postgresql
def test_a_cancel_is_answered_while_a_handler_holds_the_row_and_done_when_it_is_free(
    database: Database, run_service: Runs, term: Term
) -> None:
    run = run_in_state(database, RunState.RUNNING, term)
    canceler = Canceler(database=database)
    with database.engine.connect() as handler:
        handler.execute(text(f"SELECT 1 FROM tsuzuki_job_runs WHERE id = {run.id} FOR UPDATE"))
        assert run_service.cancel(run.id).state is RunState.RUNNING
        view = run_service.get(run.id)
        assert view.cancel_requested is not None
        assert run_service.explain(run.id).reasons[0].cause == "cancel_requested"
        assert canceler.tick(term) == 0
    assert canceler.tick(term) == 1
    after = read_run(database, run.id)
    assert (after.state, after.reason) == (RunState.CANCELED, Reason.OPERATOR)
    assert requested(database) == []
    check_history(database)


@only_on_postgresql
def test_the_leader_looks_twice_a_second_whether_the_row_is_free(
    database: Database, run_service: Runs, term: Term
) -> None:
    run = run_in_state(database, RunState.RUNNING, term)
    leader = Leader(
        database=database,
        settings=EngineSettings,
        random=Random(1),
        coordination=NoCoordination(),
    )
    with database.engine.connect() as handler:
        handler.execute(text(f"SELECT 1 FROM tsuzuki_job_runs WHERE id = {run.id} FOR UPDATE"))
        run_service.cancel(run.id)
        led = leader.tick(term)
        assert (led.canceled, led.seconds_to_next) == (0, CANCEL_INTERVAL_SECONDS)
    assert leader.tick(term).canceled == 1
    assert leader.tick(term).seconds_to_next is None


@pytest.mark.parametrize("reason", [Reason.OPERATOR, Reason.REPLACED])
def test_a_requested_run_ends_with_the_reason_of_its_request(
    database: Database, term: Term, reason: Reason
) -> None:
    run = run_in_state(database, RunState.RUNNING, term)
    request(database, run.id, reason)
    assert Canceler(database=database).tick(term) == 1
    assert read_run(database, run.id).reason is reason


def test_a_run_that_ended_by_itself_keeps_its_end(database: Database, term: Term) -> None:
    run = run_in_state(database, RunState.SUCCEEDED, term)
    request(database, run.id)
    assert Canceler(database=database).tick(term) == 0
    assert read_run(database, run.id).state is RunState.SUCCEEDED
    assert requested(database) == []


def test_the_request_follows_a_retry_that_was_stored_at_the_same_moment(
    database: Database, term: Term
) -> None:
    run = read_run(database, run_in_state(database, RunState.FAILED, term).id)
    with database.write() as connection:
        retry = new_retry(run, scheduled_for=database.now(connection))
        (retry_id,) = runs.create(connection, [retry])
    assert retry_id is not None
    request(database, run.id)
    canceler = Canceler(database=database)
    canceler.tick(term)
    assert requested(database) == [retry_id]
    assert canceler.tick(term) == 1
    assert read_run(database, retry_id).state is RunState.CANCELED


def test_a_retry_by_hand_is_not_canceled(database: Database, run_service: Runs, term: Term) -> None:
    run = run_in_state(database, RunState.FAILED, term)
    request(database, run.id)
    retry_id = run_service.retry(run.id).run_id
    Canceler(database=database).tick(term)
    assert requested(database) == []
    assert read_run(database, retry_id).state is RunState.PENDING
