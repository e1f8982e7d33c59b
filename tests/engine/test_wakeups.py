"""Wake-ups inside a process: none is lost, and each wakes only the loop that it names. The listener for those of other
processes passes them on, and is replaced when it fails."""

from collections.abc import Collection

import pytest

from support.moving_clock import MovingClock
from tsuzuki.engine import wakeups as engine_wakeups
from tsuzuki.engine.wakeups import ProcessWakeUps, WakeUp, WakeUpListener
from tsuzuki.model.errors import Unreachable
from tsuzuki.store.sql.database import Database
from tsuzuki.store.wakeups.channels import ALL_CHANNELS, WakeupChannel


def test_a_wake_up_while_nothing_waits_ends_the_next_wait_at_once(clock: MovingClock) -> None:
    wakeup = WakeUp(clock)
    wakeup.wake()
    wakeup.wake()
    assert wakeup.wait(10.0)
    assert clock.monotonic() == 0.0


def test_without_a_wake_up_a_wait_ends_after_its_time(clock: MovingClock) -> None:
    wakeup = WakeUp(clock)
    wakeup.wake()
    wakeup.wait(10.0)
    assert not wakeup.wait(10.0)
    assert clock.monotonic() == 10.0


@pytest.mark.parametrize(
    ("names", "leader", "worker", "definitions"),
    [
        ({WakeupChannel.LEADER}, True, False, False),
        ({WakeupChannel.WORKERS}, False, True, True),
        ({"w-1"}, False, True, False),
        ({"w-2"}, False, False, False),
        (ALL_CHANNELS, True, True, True),
    ],
    ids=["leader", "workers", "this worker", "another worker", "all channels"],
)
def test_a_name_wakes_the_loop_that_it_stands_for(
    clock: MovingClock, names: set[str], leader: bool, worker: bool, definitions: bool
) -> None:
    wakeups = ProcessWakeUps(clock, worker_id=lambda: "w-1")
    wakeups.wake(names)
    woken = [one.wait(0) for one in (wakeups.leader, wakeups.worker, wakeups.definitions)]
    assert woken == [leader, worker, definitions]


def test_a_process_that_stops_wakes_every_loop(clock: MovingClock) -> None:
    wakeups = ProcessWakeUps(clock, worker_id=lambda: "w-1")
    wakeups.wake_all()
    assert all(one.wait(0) for one in (wakeups.leader, wakeups.worker, wakeups.definitions))


def test_a_worker_that_its_own_process_wakes_was_not_called(clock: MovingClock) -> None:
    wakeups = ProcessWakeUps(clock, worker_id=lambda: "w-1")
    wakeups.worker.wake()
    wakeups.wake({WakeupChannel.LEADER, "w-2"})
    assert not wakeups.take_worker_call()
    wakeups.wake({"w-1"})
    assert wakeups.take_worker_call()
    assert not wakeups.take_worker_call()


class ScriptedListener:
    """A database connection that hears what the test says, and then fails."""

    def __init__(self, *heard: Collection[str]) -> None:
        self._heard = list(heard)
        self.is_closed = False

    def wait(self, _seconds: float) -> Collection[str]:
        if not self._heard:
            raise Unreachable("the connection broke")
        return self._heard.pop(0)

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def wakeups(clock: MovingClock) -> ProcessWakeUps:
    return ProcessWakeUps(clock, worker_id=lambda: "w-1")


def woken(wakeups: ProcessWakeUps) -> tuple[bool, bool]:
    return wakeups.leader.wait(0), wakeups.worker.wait(0)


def listen_to(monkeypatch: pytest.MonkeyPatch, *opened: ScriptedListener) -> None:
    """One after the other, each time a listener is opened."""
    waiting = list(opened)
    monkeypatch.setattr(
        engine_wakeups.listeners, "listen", lambda _database, _channels: waiting.pop(0)
    )


def test_a_new_listener_wakes_every_loop_and_then_what_it_hears(
    database: Database, wakeups: ProcessWakeUps, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wake-up that was sent before it listened would be lost otherwise."""
    listen_to(monkeypatch, ScriptedListener((), {WakeupChannel.WORKERS}))
    listener = WakeUpListener(database=database, wakeups=wakeups, channels=ALL_CHANNELS)
    assert not listener.is_open
    listener.step()
    assert (listener.is_open, woken(wakeups)) == (True, (True, True))
    listener.step()
    assert woken(wakeups) == (False, True)


def test_a_listener_that_fails_is_closed_and_replaced_and_every_loop_polls(
    database: Database, wakeups: ProcessWakeUps, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = ScriptedListener()
    listen_to(monkeypatch, failing, ScriptedListener(()))
    listener = WakeUpListener(database=database, wakeups=wakeups, channels=ALL_CHANNELS)
    with pytest.raises(Unreachable):
        listener.step()
    assert (failing.is_closed, listener.is_open) == (True, False)
    woken(wakeups)
    listener.step()
    assert (listener.is_open, woken(wakeups)) == (True, (True, True))
