"""Threads that start together, for races; and one call in the background."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
TIMEOUT_SECONDS = 60.0


def at_once(count: int, work: Callable[[int], T]) -> list[T]:
    """`work(0)` … `work(count - 1)`, started together, each in its own thread. Answers in order,
    or raises what one of them raised."""
    gate = threading.Barrier(count)

    def enter(number: int) -> T:
        gate.wait(TIMEOUT_SECONDS)
        return work(number)

    with ThreadPoolExecutor(count) as pool:
        futures = [pool.submit(enter, number) for number in range(count)]
        return [future.result(TIMEOUT_SECONDS) for future in futures]


def in_background(work: Callable[[], T]) -> "Future[T]":
    """Start a call that may block. `result()` waits for it and raises what it raised."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as problem:  # noqa: BLE001 -- raised again by `result()`
            future.set_exception(problem)

    threading.Thread(target=run, daemon=True).start()
    return future
