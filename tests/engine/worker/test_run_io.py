"""Transactions of handlers are fenced: they commit while the run is owned by its worker, and never after."""

from contextlib import suppress

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from support.dialects import only_on_postgresql, only_on_sqlite
from support.threads import in_background
from support.worker_fixture import WorkerFixture, note, take_away
from tsuzuki.engine.worker.output_buffer import BufferedOutput, write_output
from tsuzuki.model.errors import Fenced, UsageError
from tsuzuki.model.states import RunState
from tsuzuki.services.runs import Runs


def test_rows_and_progress_of_a_transaction_are_there_together(fixture: WorkerFixture) -> None:
    (execution,) = fixture.start()
    with execution.run_io.transaction(execution.task) as connection:
        note(connection)
        execution.progress(3, 4)
    assert (fixture.notes(), fixture.run(execution.task.run.id).progress_processed) == (1, 3)


def test_progress_that_the_worker_has_taken_is_in_the_transaction_all_the_same(
    fixture: WorkerFixture,
) -> None:
    (execution,) = fixture.start()
    run_id = execution.task.run.id
    execution.progress(3, 4)
    fixture.worker.output.take()  # and dies before it writes it
    with execution.run_io.transaction(execution.task) as connection:
        note(connection)
    assert (fixture.notes(), fixture.run(run_id).progress_processed) == (1, 3)


def test_progress_of_a_transaction_is_not_replaced_by_what_the_worker_took_before(
    fixture: WorkerFixture,
) -> None:
    (execution,) = fixture.start()
    run_id = execution.task.run.id
    execution.progress(3, 4)
    taken = fixture.worker.output.take()
    with execution.run_io.transaction(execution.task):
        execution.progress(4, 4)
    with fixture.database.write() as connection:
        left = write_output(connection, taken, worker_id=fixture.worker.worker_id)
    run = fixture.run(run_id)
    assert (run.progress_processed, run.progress_total, left) == (4, 4, BufferedOutput())


def test_progress_of_a_transaction_that_was_rolled_back_is_written_by_the_worker(
    fixture: WorkerFixture,
) -> None:
    (execution,) = fixture.start()

    def fail() -> None:
        with execution.run_io.transaction(execution.task):
            execution.progress(3, 4)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    fixture.worker.tick()
    assert fixture.run(execution.task.run.id).progress_processed == 3


def test_progress_that_a_handler_reports_may_go_down(fixture: WorkerFixture) -> None:
    """As when another part of its work begins."""
    (execution,) = fixture.start()
    for processed, total in ((40, 40), (0, 50)):
        execution.progress(processed, total)
        fixture.worker.tick()
        run = fixture.run(execution.task.run.id)
        assert (run.progress_processed, run.progress_total) == (processed, total)
    with execution.run_io.transaction(execution.task):
        execution.progress(2, 50)
    with execution.run_io.transaction(execution.task):
        execution.progress(1, 50)
    assert fixture.run(execution.task.run.id).progress_processed == 1


def test_a_transaction_whose_block_raises_leaves_nothing(fixture: WorkerFixture) -> None:
    (execution,) = fixture.start()

    def fail() -> None:
        with execution.run_io.transaction(execution.task) as connection:
            note(connection)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert fixture.notes() == 0
    assert fixture.run(execution.task.run.id).state is RunState.RUNNING


@only_on_postgresql
def test_a_transaction_that_failed_is_an_error_though_the_handler_caught_its_cause(
    fixture: WorkerFixture,
) -> None:
    (execution,) = fixture.start()

    def catch_an_error() -> None:
        with execution.run_io.transaction(execution.task) as connection:
            note(connection)
            with suppress(DBAPIError):
                connection.execute(text("SELECT 1 / 0"))

    with pytest.raises(UsageError) as caught:
        catch_an_error()
    assert caught.value.specific_code == "transaction_failed"
    assert fixture.notes() == 0


@pytest.mark.parametrize("how", ["canceled", "judged lost"])
def test_a_run_that_was_taken_gets_no_transaction(fixture: WorkerFixture, how: str) -> None:
    (execution,) = fixture.start()
    with execution.run_io.transaction(execution.task) as connection:
        note(connection)
    take_away(fixture, execution.task.run.id, how)
    entered = False
    with (
        pytest.raises(Fenced, match="nothing was written"),
        execution.run_io.transaction(execution.task) as connection,
    ):
        entered = True
    assert not entered
    assert fixture.notes() == 1


@only_on_sqlite  # on PostgreSQL a cancel does not wait: it is requested
def test_taking_a_run_waits_for_the_commit_of_its_transaction(fixture: WorkerFixture) -> None:
    (execution,) = fixture.start()
    run_id = execution.task.run.id
    with fixture.worker.run_io.transaction(execution.task) as connection:
        canceling = in_background(
            lambda: Runs(database=fixture.faulty_database, actor="me").cancel(run_id)
        )
        note(connection)
        assert not canceling.done()
    assert canceling.result(30).state is RunState.CANCELED
    assert fixture.notes() == 1
    with pytest.raises(Fenced), fixture.worker.run_io.transaction(execution.task):
        pass


def test_a_finished_run_gets_no_transaction(fixture: WorkerFixture) -> None:
    (execution,) = fixture.start()
    execution.succeed()
    fixture.worker.tick()
    with pytest.raises(Fenced), execution.run_io.transaction(execution.task):
        pass
