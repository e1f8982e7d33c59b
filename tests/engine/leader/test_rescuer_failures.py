"""A run that the leader fails is in a group by its reason."""

from sqlalchemy import select

from support.factories import run_in_state
from support.moving_clock import MovingClock
from support.rescuing import LOST, a_rescuer
from tsuzuki.model.states import RunState
from tsuzuki.store.leadership import Term
from tsuzuki.store.schema.history_tables import failure_groups, run_failures
from tsuzuki.store.sql.database import Database


def test_a_lost_run_is_a_failure_of_its_reason(
    database: Database, clock: MovingClock, term: Term, worker: str
) -> None:
    run = run_in_state(database, RunState.RUNNING, term)
    clock.advance(LOST)
    assert a_rescuer(database).tick(term).failed == 1
    with database.read() as connection:
        (failure,) = connection.execute(select(run_failures)).all()
        (group,) = connection.execute(select(failure_groups)).all()
    assert (failure.run_id, failure.failed_at) == (run.id, clock.now())
    assert group.signature == "worker_lost"
