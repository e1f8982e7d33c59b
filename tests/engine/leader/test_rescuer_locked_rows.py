"""Rows that a handler's transaction has locked: the rescuer skips them, and rescues the others."""

from random import Random

import pytest
from sqlalchemy import select

from support.factories import add_worker, read_run, run_in_state, take_lead
from support.history_checker import check_history
from support.moving_clock import MovingClock
from tsuzuki.engine.leader.rescuer import Rescuer
from tsuzuki.model.settings import EngineSettings
from tsuzuki.model.states import RunState
from tsuzuki.store.schema.tables import job_runs
from tsuzuki.store.sql.database import Database

SETTINGS = EngineSettings().checked()


@pytest.mark.parametrize("dialect", ["postgresql"])
def test_a_locked_row_does_not_hold_up_the_rescue_of_others(
    database: Database, clock: MovingClock
) -> None:
    add_worker(database)
    term = take_lead(database, lease_seconds=100_000)
    locked, other = (run_in_state(database, RunState.RUNNING, term) for _ in range(2))
    clock.advance(SETTINGS.lost_after_seconds + 1)
    rescuer = Rescuer(database=database, settings=lambda: SETTINGS, random=Random(1))
    with database.engine.connect() as handler:
        handler.execute(select(job_runs.c.id).where(job_runs.c.id == locked.id).with_for_update())
        assert rescuer.tick(term).failed == 1
        assert read_run(database, other.id).state is RunState.FAILED
        assert read_run(database, locked.id).state is RunState.RUNNING
    assert rescuer.tick(term).failed == 1
    assert read_run(database, locked.id).state is RunState.FAILED
    check_history(database)
