"""A host pool: a few threads per host, with one rate gate that pauses the host for all of them.

What stops the run itself (it is fenced, the database is away, a person cancels it) stops every thread at
its next page; the first cause is raised once all of them have ended.
"""

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from tsuzuki.collectors.commits.sources.rate_gate import RateGate
from tsuzuki.engine.run_context import RunContext, RunStopped
from tsuzuki.model.clock import Clock

CHECK_SECONDS = 0.5


HostTask = Callable[[RateGate], None]
"""Something to do with a host. What it raises stops the run."""


class HostPool:
    """The threads of one run. `threads_of` says how many a host may have."""

    def __init__(
        self, *, run: RunContext, clock: Clock, name: str, threads_of: Callable[[str], int]
    ) -> None:
        self._run = run
        self._clock = clock
        self._name = name
        self._threads_of = threads_of
        self._stopped = threading.Event()
        self._cause: BaseException | None = None

    def stopping(self) -> bool:
        """Whether to stop at the next page."""
        return self._stopped.is_set() or self._run.cancelled

    def wait(self, seconds: float) -> None:
        """Wait, but not through being stopped: then `RunStopped` is raised."""
        end = self._clock.monotonic() + seconds
        while (left := end - self._clock.monotonic()) > 0:
            if self._run.wait(min(left, CHECK_SECONDS)) or self.stopping():
                raise RunStopped

    def work(self, tasks_by_host: Mapping[str, Sequence[HostTask]]) -> None:
        """Do every task. Returns when all threads have ended."""
        pools = []
        for host, tasks in tasks_by_host.items():
            queue, gate = deque(tasks), RateGate(self._clock, self.wait)
            threads = min(self._threads_of(host), len(queue))
            pool = ThreadPoolExecutor(threads, thread_name_prefix=f"{self._name} {host}")
            for _ in range(threads):
                pool.submit(self._drain, queue, gate)
            pools.append(pool)
        for pool in pools:
            pool.shutdown(wait=True)
        if self._cause is not None:
            raise self._cause
        self._run.raise_if_cancelled()

    def _drain(self, queue: deque[HostTask], gate: RateGate) -> None:
        try:
            while not self.stopping():
                try:
                    task = queue.popleft()
                except IndexError:
                    return
                task(gate)
        except BaseException as cause:  # noqa: BLE001 -- raised again once every thread has ended
            self._cause = self._cause or cause
            self._stopped.set()
