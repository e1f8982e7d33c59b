"""An order about one run or one worker wakes the processes that it is for, not every worker."""

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from support.dialects import only_on_postgresql
from support.factories import WORKER, add_worker, run_in_state, take_lead
from tsuzuki.model.states import RunState
from tsuzuki.services.runs import Runs
from tsuzuki.services.workers import Workers
from tsuzuki.store.sql.database import Database
from tsuzuki.store.wakeups import listeners
from tsuzuki.store.wakeups.channels import WakeupChannel
from tsuzuki.store.wakeups.listeners import Listener


@pytest.fixture
def listener(live_database: Database) -> Iterator[Listener]:
    add_worker(live_database)
    term = take_lead(live_database)
    for state in (RunState.RUNNING, RunState.PENDING):
        run_in_state(live_database, state, term)
    with closing(listeners.listen(live_database)) as listener:
        yield listener


def heard(listener: Listener) -> set[str]:
    for _ in range(30):
        if names := listener.wait(1.0):
            return set(names)
    raise AssertionError("nothing was heard")


@only_on_postgresql
@pytest.mark.parametrize(
    ("order", "woken"),
    [
        (lambda runs, _workers: runs.cancel(1), {WORKER, WakeupChannel.LEADER}),
        (lambda runs, _workers: runs.cancel(2), {WakeupChannel.LEADER}),
        (lambda _runs, workers: workers.drain(WORKER), {WORKER}),
        (lambda _runs, workers: workers.detach(WORKER), {WORKER}),
    ],
    ids=["cancel what runs", "cancel what waits", "drain", "detach"],
)
def test_an_order_wakes_the_processes_that_it_is_for(
    live_database: Database,
    listener: Listener,
    order: Callable[[Runs, Workers], object],
    woken: set[str],
) -> None:
    beside: set[str] = set()
    runs = Runs(database=live_database, actor="test", wake_others=beside.update)
    order(runs, Workers(database=live_database, actor="test"))
    names: set[str] = set()
    while not woken <= names:
        names |= heard(listener)
    assert names == woken
    assert beside <= woken
