"""A worker stores the group of a failure with the end of the run, and nothing for a run that succeeds."""

from sqlalchemy import select

from support.statement_recorder import recorded
from support.worker_fixture import WorkerFixture, reply_lost
from tsuzuki.engine.failures import note_failures
from tsuzuki.model.states import Reason, RunState
from tsuzuki.store.runs.moves import RunEnd
from tsuzuki.store.schema.history_tables import failure_groups, run_failures
from tsuzuki.store.sql.database import Database


def groups(database: Database) -> dict[str, list[int]]:
    """The runs of each group, by its signature."""
    statement = (
        select(failure_groups.c.signature, run_failures.c.run_id)
        .join(run_failures, run_failures.c.group_id == failure_groups.c.id)
        .order_by(run_failures.c.run_id)
    )
    found: dict[str, list[int]] = {}
    with database.read() as connection:
        for signature, run_id in connection.execute(statement):
            found.setdefault(signature, []).append(run_id)
    return found


def test_runs_that_fail_for_one_cause_are_one_group(fixture: WorkerFixture) -> None:
    first, second, third = fixture.start(3)
    first.fail(error="order 17 is missing")
    second.fail(error="order 4711 is missing")
    third.fail(error="it broke \x00 there")
    fixture.worker.tick()
    ids = [execution.task.run.id for execution in (first, second, third)]
    found = groups(fixture.database)
    assert found["order <n> is missing"] == ids[:2]
    assert len(found) == 2


def test_a_run_that_succeeds_or_is_canceled_sends_no_statement_more(
    fixture: WorkerFixture,
) -> None:
    (execution,) = fixture.start()
    execution.succeed()
    with recorded(fixture.database) as sent:
        assert len(fixture.worker.tick().ended) == 1
    assert not any("failure" in statement for statement in sent)
    assert groups(fixture.database) == {}


def test_an_end_that_is_not_accepted_leaves_no_failure(fixture: WorkerFixture) -> None:
    (execution,) = fixture.start()
    fixture.cancel(execution.task.run.id)
    execution.fail(error="too late")
    fixture.worker.tick()
    assert groups(fixture.database) == {}


def test_an_end_whose_reply_was_lost_is_one_failure(fixture: WorkerFixture) -> None:
    (execution,) = fixture.start()
    execution.fail(error="it broke")
    with reply_lost(fixture):
        fixture.worker.tick()
    fixture.worker.tick()
    assert groups(fixture.database) == {"it broke": [execution.task.run.id]}


def test_a_run_that_a_shutdown_ended_is_no_failure(fixture: WorkerFixture) -> None:
    (execution,) = fixture.start()
    order = execution.task.run
    end = RunEnd(run=order.started, state=RunState.FAILED, reason=Reason.WORKER_SHUTDOWN)
    with fixture.database.write() as connection:
        note_failures(connection, [(order, end)])
    assert groups(fixture.database) == {}
