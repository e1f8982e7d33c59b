"""Runs are found before, and rescued in short transactions that check again."""

import pytest

from support.factories import read_run, run_in_state
from support.moving_clock import MovingClock
from support.rescuing import LOST, SecondWrite, a_rescuer, heartbeat
from support.statement_recorder import recorded
from tsuzuki.engine.leader import rescuer as rescuer_module
from tsuzuki.model.states import RunState
from tsuzuki.store.leadership import Term
from tsuzuki.store.sql.database import Database

pytestmark = pytest.mark.usefixtures("worker", "history_is_valid")


def test_a_worker_that_is_heard_between_the_read_and_the_write_keeps_its_runs(
    database: Database, clock: MovingClock, term: Term
) -> None:
    run = run_in_state(database, RunState.RUNNING, term)
    clock.advance(LOST)
    assert a_rescuer(SecondWrite(database, lambda: heartbeat(database))).tick(term).failed == 0
    assert read_run(database, run.id).state is RunState.RUNNING


def test_many_lost_runs_are_failed_in_several_short_transactions(
    database: Database, clock: MovingClock, term: Term, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rescuer_module, "BATCH_MAX", 2)
    lost = [run_in_state(database, RunState.RUNNING, term) for _ in range(5)]
    clock.advance(LOST)
    with recorded(database) as sent:
        rescued = a_rescuer(database).tick(term)
    assert (rescued.failed, rescued.retries) == (5, 5)
    failing = [statement for statement in sent if "finished_at=" in statement]
    assert len(failing) == 3
    assert {read_run(database, run.id).state for run in lost} == {RunState.FAILED}


def test_no_further_batch_is_failed_once_silence_may_not_be_judged(
    database: Database, clock: MovingClock, term: Term, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rescuer_module, "BATCH_MAX", 2)
    for _ in range(5):
        run_in_state(database, RunState.RUNNING, term)
    clock.advance(LOST)
    answers = iter([True, True, False])
    assert a_rescuer(database).tick(term, may_judge=lambda _now: next(answers)).failed == 2
