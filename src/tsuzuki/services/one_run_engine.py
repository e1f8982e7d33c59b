"""An engine of this process for one run that is waited for, if no other executes it."""

from tsuzuki.model.clock import Clock
from tsuzuki.services.local_engine import LocalEngine

CHECK_SECONDS = 2.0
START_TIMEOUT_SECONDS = 5.0
"""A run that has waited so long for a live engine is executed here."""


class OneRunEngine:
    """Sees that one run of `job` is executed: by the engines that live, else by an engine of this process with
    one slot, which executes no other job. `check` is called again and again while the run is waited for."""

    def __init__(self, engine: LocalEngine, job: str, *, clock: Clock) -> None:
        self._engine = engine
        self._job = job
        self._clock = clock
        self._is_ours = False
        self._checked_at = -CHECK_SECONDS
        self._waits_since = clock.monotonic()

    def check(self, *, is_running: bool) -> None:
        """Start an engine here if none lives, or if those that do have not started the run in time."""
        now = self._clock.monotonic()
        if is_running:
            self._waits_since = now
        if self._is_ours and self._engine.has_left():
            self.close()  # it has executed its one run, and another attempt follows
        if self._is_ours and is_running:
            self._engine.stop_accepting_once_busy()
        elif not self._is_ours and now - self._checked_at >= CHECK_SECONDS:
            self._checked_at = now
            is_late = now - self._waits_since > START_TIMEOUT_SECONDS
            self._is_ours = self._engine.start_if_needed(
                capacity=1, is_late=is_late, only_job=self._job
            )

    @property
    def is_ours(self) -> bool:
        """Whether an engine of this process executes the run."""
        return self._is_ours

    def close(self) -> None:
        """Stop the engine, if it was started for this run."""
        if self._is_ours:
            self._is_ours = False
            self._engine.stop(at_once=True)
