"""Real processes that start together, for races between processes."""

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, TypeVar

from support.forked_program import forking

T = TypeVar("T")
TIMEOUT_SECONDS = 100.0

_gate: Any = None


def in_processes(work: Callable[..., T], calls: Sequence[Sequence[Any]]) -> list[T]:
    """`work(*call)` for each call, each in a new process, all started at one moment. Answers in order.
    `work` must be a function of a module, and its arguments must be picklable."""
    gate = forking.Barrier(len(calls))
    with ProcessPoolExecutor(
        len(calls), mp_context=forking, initializer=_hold_gate, initargs=(gate,)
    ) as pool:
        futures = [pool.submit(_enter, work, *call) for call in calls]
        return [future.result(TIMEOUT_SECONDS) for future in futures]


def keep_together() -> None:
    """In `work`: wait until all of the processes are here, so that none is done before another has started."""
    _gate.wait(TIMEOUT_SECONDS)


def _hold_gate(gate: Any) -> None:
    global _gate  # noqa: PLW0603 -- a barrier can only be inherited, not pickled
    _gate = gate


def _enter(work: Callable[..., T], *call: Any) -> T:
    keep_together()
    return work(*call)
