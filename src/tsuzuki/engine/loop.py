"""A loop around a bounded step, in a thread of its own. An error of a step is logged, and the step retried."""

import threading
from collections.abc import Callable

from tsuzuki.engine.log import log
from tsuzuki.model.clock import Clock
from tsuzuki.model.errors import TsuzukiError
from tsuzuki.model.loop_failure import FAILURES_MIN, LoopFailure

BACKOFF_FIRST_SECONDS = 0.1
BACKOFF_MAX_SECONDS = 2.0


class Loop:
    """`step` is one bounded step; it answers how many seconds to pause before the next one."""

    def __init__(
        self,
        name: str,
        step: Callable[[], float],
        *,
        clock: Clock,
        on_error: Callable[[str], None],
    ) -> None:
        self.name = name
        self._step = step
        self._clock = clock
        self._on_error = on_error
        self._stopping = threading.Event()
        self._awake = threading.Event()
        self._failures = 0
        self._last_failure: LoopFailure | None = None
        self._thread = threading.Thread(target=self._run, name=f"tsuzuki-{name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ask it to end after the step it is in."""
        self._stopping.set()
        self.wake()

    def wake(self) -> None:
        """End its pause, or skip the next one."""
        self._awake.set()

    @property
    def is_alive(self) -> bool:
        """False if its thread has ended without having been asked to."""
        is_expected = self._thread.ident is None or self._stopping.is_set()
        return is_expected or self._thread.is_alive()

    @property
    def failure(self) -> LoopFailure | None:
        """Why it is failing; None if the last steps, or few of them, have gone well."""
        last = self._last_failure
        return last if last is not None and last.failures >= FAILURES_MIN else None

    def is_failing(self) -> bool:
        return self.failure is not None

    def join(self, seconds: float) -> bool:
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _pause(self, seconds: float) -> None:
        """Ends early when the loop is woken or stopped."""
        self._clock.wait(self._awake, seconds)
        self._awake.clear()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                pause_seconds = self._step()
                self._recovered()
                if pause_seconds > 0:
                    self._pause(pause_seconds)
            except TsuzukiError as problem:
                self._failed(problem.message, code=problem.specific_code, hint=problem.hint)
            except Exception as problem:  # noqa: BLE001 -- one bad step must not end the engine
                self._failed(repr(problem), code="bug", exc_info=True)

    def _recovered(self) -> None:
        if self._failures:
            log.info("recovered", loop=self.name, after_failures=self._failures)
            self._failures = 0
            self._last_failure = None

    def _failed(
        self, message: str, *, code: str, hint: str | None = None, exc_info: bool = False
    ) -> None:
        """Log the first failure of a row of them only: a database that is unreachable for an hour is one
        line, not a thousand. Then wait, with exponential backoff."""
        self._failures += 1
        last = self._last_failure
        self._last_failure = LoopFailure(
            loop=self.name,
            failures=self._failures,
            since=last.since if last else self._clock.now(),
            code=code,
            error=message,
        )
        self._on_error(self.name)
        if self._failures == 1:
            log.warning(
                "step failed, retrying",
                loop=self.name,
                code=code,
                error=message,
                hint=hint,
                exc_info=exc_info,
            )
        backoff = BACKOFF_FIRST_SECONDS * 2 ** min(self._failures - 1, 10)
        self._pause(min(backoff, BACKOFF_MAX_SECONDS))
