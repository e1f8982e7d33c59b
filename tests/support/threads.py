"""Several threads at one moment, and one call left running in the background."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
PATIENCE_SECONDS = 60.0


def at_once(count: int, work: Callable[[int], T]) -> list[T]:
    """`work(0)` … `work(count - 1)`, begun together, each in its own thread; answers in order.
    What one of them raises is raised here."""
    gate = threading.Barrier(count)

    def enter(number: int) -> T:
        gate.wait(PATIENCE_SECONDS)
        return work(number)

    with ThreadPoolExecutor(count) as pool:
        futures = [pool.submit(enter, number) for number in range(count)]
        return [future.result(PATIENCE_SECONDS) for future in futures]


def in_background(work: Callable[[], T]) -> "Future[T]":
    """Begin a call that may have to wait. `result()` waits for it and raises what it raised."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as problem:  # noqa: BLE001 -- handed to whoever asks for the result
            future.set_exception(problem)

    threading.Thread(target=run, daemon=True).start()
    return future
