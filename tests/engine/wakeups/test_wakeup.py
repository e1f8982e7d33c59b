"""Wake-ups inside a process: none is lost, and each wakes only the loop that it names."""

import pytest

from support.moving_clock import MovingClock
from tsuzuki.engine.wakeups.wakeup import ProcessWakeUps, WakeUp
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
    ("names", "leader", "worker"),
    [
        ({WakeupChannel.LEADER}, True, False),
        ({WakeupChannel.WORKERS}, False, True),
        ({"w-1"}, False, True),
        ({"w-2"}, False, False),
        (ALL_CHANNELS, True, True),
    ],
    ids=["leader", "workers", "this worker", "another worker", "all channels"],
)
def test_a_name_wakes_the_loop_that_it_stands_for(
    clock: MovingClock, names: set[str], leader: bool, worker: bool
) -> None:
    wakeups = ProcessWakeUps(clock, worker_id=lambda: "w-1")
    wakeups.wake(names)
    assert (wakeups.leader.wait(0), wakeups.worker.wait(0)) == (leader, worker)


def test_a_worker_that_its_own_process_wakes_was_not_called(clock: MovingClock) -> None:
    wakeups = ProcessWakeUps(clock, worker_id=lambda: "w-1")
    wakeups.worker.wake()
    wakeups.wake({WakeupChannel.LEADER, "w-2"})
    assert not wakeups.take_worker_call()
    wakeups.wake({"w-1"})
    assert wakeups.take_worker_call()
    assert not wakeups.take_worker_call()
