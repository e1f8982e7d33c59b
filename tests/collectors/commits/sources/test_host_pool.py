"""Threads per host, a pause that is the host's, and one cause that stops them all."""

import threading

import pytest

from support.executions import a_task
from tsuzuki.collectors.commits.sources.host_pool import HostPool
from tsuzuki.collectors.commits.sources.rate_gate import RateGate
from tsuzuki.engine.run_context import RunContext, RunStopped, StopSignal
from tsuzuki.model.clock import SystemClock

LONG_SECONDS = 30.0


@pytest.fixture
def stop_signal() -> StopSignal:
    return StopSignal()


@pytest.fixture
def pool(stop_signal: StopSignal) -> HostPool:
    clock = SystemClock()
    run = RunContext(
        task=a_task("commits", {}),
        run_io=None,  # type: ignore[arg-type]
        clock=clock,
        stop_signal=stop_signal,
    )
    return HostPool(run=run, clock=clock, name="test", threads_of=lambda _host: 2)


def test_a_host_has_no_more_threads_than_it_may(pool: HostPool) -> None:
    lock, now, most = threading.Lock(), [0], [0]
    together = threading.Barrier(2)

    def task(_gate: RateGate) -> None:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        together.wait(LONG_SECONDS)
        with lock:
            now[0] -= 1

    pool.work({"one": [task] * 6})
    assert most == [2]


def test_a_pause_holds_for_its_host_and_for_no_other(pool: HostPool) -> None:
    order: list[str] = []
    other_is_done = threading.Event()

    def pausing(gate: RateGate) -> None:
        gate.close(0.2)
        other_is_done.wait(LONG_SECONDS)
        gate.wait_until_open()
        order.append("paused")

    def other(gate: RateGate) -> None:
        gate.wait_until_open()
        order.append("other")
        other_is_done.set()

    pool.work({"one": [pausing], "two": [other]})
    assert order == ["other", "paused"]


def test_the_first_cause_stops_every_thread_and_is_raised(pool: HostPool) -> None:
    done: list[int] = []

    def failing(_gate: RateGate) -> None:
        raise ZeroDivisionError

    def waiting(gate: RateGate) -> None:
        gate.close(LONG_SECONDS)
        gate.wait_until_open()
        done.append(1)

    with pytest.raises(ZeroDivisionError):
        pool.work({"one": [failing, waiting], "two": [waiting, waiting, waiting]})
    assert done == []
    assert pool.stopping()


def test_a_cancelled_run_starts_no_task(pool: HostPool, stop_signal: StopSignal) -> None:
    stop_signal.set()
    done: list[int] = []
    with pytest.raises(RunStopped):
        pool.work({"one": [lambda _gate: done.append(1)]})
    assert done == []
