"""Working on many targets at once: a few threads per host, and a pause that is the host's.

One target's failure is that target's result. What stops the run itself (another holds it, the database is
away, a person cancels) stops every thread at its next page.
"""

import os
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

from tsuzuki.collectors.commits.branch import Branch
from tsuzuki.collectors.commits.options import CommitsSection
from tsuzuki.collectors.commits.source import Source
from tsuzuki.collectors.commits.sources import THIS_MACHINE
from tsuzuki.collectors.kit.errors import RateLimited, SourceFailed, SourceUnwell
from tsuzuki.collectors.kit.redaction import redacted
from tsuzuki.engine.executors.failures import traceback_lines
from tsuzuki.engine.run_context import RunContext, RunStopped
from tsuzuki.model.clock import Clock
from tsuzuki.model.errors import ConfigurationError, Conflict, TsuzukiError, Unreachable

BACKOFF_SECONDS = 1.0
BACKOFF_LONGEST_SECONDS = 60.0
PAUSE_SECONDS = 60.0
"""What a rate limit without a time is taken for."""

LOOK_SECONDS = 0.5

Work = tuple[Branch, Callable[[], Source]]


class Gate:
    """Whether a host may be asked now. Its pause is everybody's who asks it. `rest` waits, and raises
    `RunStopped` if it is time to stop."""

    def __init__(self, clock: Clock, rest: Callable[[float], None]) -> None:
        self._clock = clock
        self._rest = rest
        self._closed_until = 0.0

    def close(self, seconds: float) -> None:
        self._closed_until = max(self._closed_until, self._clock.monotonic() + seconds)

    def pass_through(self) -> None:
        """Wait until it is open."""
        while (left := self._closed_until - self._clock.monotonic()) > 0:
            self._rest(left)


class Crew:
    """Collects branches; the first thing that stops the run is raised when all have stopped."""

    def __init__(
        self,
        *,
        run: RunContext,
        clock: Clock,
        section: CommitsSection,
        done: Callable[[], None],
    ) -> None:
        self._run = run
        self._clock = clock
        self._section = section
        self._done = done
        self._stopped = threading.Event()
        self._cause: BaseException | None = None

    def stopping(self) -> bool:
        return self._stopped.is_set() or self._run.cancelled

    def work(self, by_host: Mapping[str, Sequence[Work]]) -> None:
        """Do all of it. Answers when every thread has ended."""
        pools = []
        for host, work in by_host.items():
            queue, gate = deque(work), Gate(self._clock, self._rest)
            size = min(self._size(host), len(queue))
            pool = ThreadPoolExecutor(size, thread_name_prefix=f"commits {host}")
            for _ in range(size):
                pool.submit(self._empty, queue, gate)
            pools.append(pool)
        for pool in pools:
            pool.shutdown(wait=True)
        if self._cause is not None:
            raise self._cause
        self._run.raise_if_cancelled()

    def _size(self, host: str) -> int:
        size = self._section.concurrency_per_host
        return min(size, os.cpu_count() or 1) if host == THIS_MACHINE else size

    def _empty(self, queue: deque[Work], gate: Gate) -> None:
        try:
            while not self.stopping():
                try:
                    branch, source = queue.popleft()
                except IndexError:
                    return
                self._settle(branch, source, gate)
                self._done()
        except BaseException as cause:  # noqa: BLE001 -- raised again once every thread has ended
            self._cause = self._cause or cause
            self._stopped.set()

    def _settle(self, branch: Branch, opened: Callable[[], Source], gate: Gate) -> None:
        """Collect one branch, or write down why it could not be."""
        try:
            with closing(opened()) as source:
                self._persist(branch, source, gate)
        except (SourceFailed, ConfigurationError) as problem:
            branch.fail(sentence_of(problem, self._secrets()))
        except (Conflict, Unreachable):
            raise  # the run is no longer ours, or the database is away: nothing can be written
        except Exception as problem:  # noqa: BLE001 -- a bug met on one branch is that branch's
            for line in traceback_lines(problem):
                self._run.log(redacted(line, secrets=self._secrets()))
            words = f"unexpected {type(problem).__name__}: {problem}"
            branch.fail(redacted(words, secrets=self._secrets()))

    def _persist(self, branch: Branch, source: Source, gate: Gate) -> None:
        """Try again what may pass: a rate limit as long as there is patience, anything else a few
        times without a page in between."""
        tries, seen, patience = 0, 0, self._section.rate_limit_patience
        while True:
            gate.pass_through()
            try:
                branch.collect(source)
            except RateLimited as limit:
                seconds = limit.retry_after_seconds or PAUSE_SECONDS
                patience -= seconds
                if patience < 0:
                    raise
                self._run.log(f"a host asks for a pause of {seconds:.0f} s: {limit.message}")
                gate.close(seconds)
            except SourceUnwell as problem:
                tries = 1 if branch.pages_stored > seen else tries + 1
                seen = branch.pages_stored
                if tries >= self._section.tries:
                    raise
                wait = problem.retry_after_seconds or BACKOFF_SECONDS * 2 ** (tries - 1)
                self._rest(min(wait, BACKOFF_LONGEST_SECONDS))
            else:
                return

    def _rest(self, seconds: float) -> None:
        """Wait, but not through being stopped, by a person or by what another thread met."""
        end = self._clock.monotonic() + seconds
        while (left := end - self._clock.monotonic()) > 0:
            if self._run.wait(min(left, LOOK_SECONDS)) or self.stopping():
                raise RunStopped

    def _secrets(self) -> list[str]:
        token = self._section.gitlab.token
        return [token.get_secret_value()] if token else []


def sentence_of(problem: TsuzukiError, secrets: Sequence[str]) -> str:
    """What a person reads in the result."""
    hint = f" ({problem.hint})" if problem.hint else ""
    return redacted(f"{problem.message}{hint}", secrets=secrets)
