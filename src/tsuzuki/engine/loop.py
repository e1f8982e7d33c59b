"""A dull loop around a bounded step, in a thread of its own. It survives whatever a step raises."""

import threading
from collections.abc import Callable

from tsuzuki.engine.journal import log
from tsuzuki.model.clock import Clock
from tsuzuki.model.errors import TsuzukiError

BACKOFF_FIRST_SECONDS = 0.1
BACKOFF_MAX_SECONDS = 2.0


class Loop:
    """`step` does one thing, and waits for the next by itself (on a bell, or on `pause`)."""

    def __init__(
        self,
        name: str,
        step: Callable[[], None],
        *,
        clock: Clock,
        on_error: Callable[[str], None],
    ) -> None:
        self.name = name
        self._step = step
        self._clock = clock
        self._on_error = on_error
        self._stopping = threading.Event()
        self._failures = 0
        self._thread = threading.Thread(target=self._run, name=f"tsuzuki-{name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ask it to end after the step it is in."""
        self._stopping.set()

    def join(self, seconds: float) -> bool:
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def pause(self, seconds: float) -> None:
        """For steps that wait for nothing but time; ends early when the loop is stopped."""
        self._clock.wait(self._stopping, seconds)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._step()
                self._recovered()
            except TsuzukiError as problem:
                self._failed(problem.message, code=problem.specific_code, hint=problem.hint)
            except Exception as problem:  # noqa: BLE001 -- one bad step must not end the engine
                self._failed(repr(problem), code="bug", exc_info=True)

    def _recovered(self) -> None:
        if self._failures:
            log.info("recovered", loop=self.name, after_failures=self._failures)
            self._failures = 0

    def _failed(
        self, message: str, *, code: str, hint: str | None = None, exc_info: bool = False
    ) -> None:
        """Said once per streak: a database that is away for an hour is one line, not a thousand."""
        self._failures += 1
        self._on_error(self.name)
        if self._failures == 1:
            log.warning(
                "a step failed, trying again",
                loop=self.name,
                code=code,
                error=message,
                hint=hint,
                exc_info=exc_info,
            )
        backoff = BACKOFF_FIRST_SECONDS * 2 ** min(self._failures - 1, 10)
        self.pause(min(backoff, BACKOFF_MAX_SECONDS))
