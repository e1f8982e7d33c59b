"""Transactions of handlers are fenced: they commit while the run is owned by its worker, and never after."""

import pytest

from support.threads import in_background
from support.worker_fixture import WorkerFixture, note, take_away
from tsuzuki.model.errors import Fenced
from tsuzuki.model.states import RunState
from tsuzuki.services.runs import Runs


def test_rows_and_progress_of_a_transaction_are_there_together(fixture: WorkerFixture) -> None:
    (execution,) = fixture.start()
    with execution.run_io.transaction(execution.task) as connection:
        note(connection)
        execution.progress(3, 4)
    assert (fixture.notes(), fixture.run(execution.task.run.id).progress_processed) == (1, 3)


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
