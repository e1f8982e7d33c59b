"""Start an engine in this process for one run that is waited for, if no other engine executes it."""

from collections.abc import Callable

from tsuzuki.model.clock import Clock
from tsuzuki.services.local_engine import LocalEngine
from tsuzuki.services.runs import Runs

CHECK_SECONDS = 2.0
START_TIMEOUT_SECONDS = 5.0
"""A run that has waited so long for a live engine is executed here."""


class OneRunEngine:
    """Sees that one run is executed, and its retries after it: by the engines that live, else by an engine of this
    process that gets no other run from any leader, so that closing it stops nothing else. `find_run` names the run,
    or None if there is none any more. `check` is called again and again while the run is waited for."""

    def __init__(
        self, engine: LocalEngine, runs: Runs, find_run: Callable[[], int | None], *, clock: Clock
    ) -> None:
        self._engine = engine
        self._runs = runs
        self._find_run = find_run
        self._clock = clock
        self._run_id: int | None = None
        """Which run the engine of this process was started for."""
        self._checked_at = -CHECK_SECONDS
        self._waits_since = clock.monotonic()

    def check(self, *, is_running: bool) -> None:
        """Start an engine here if none lives, or if those that do have not started the run in time."""
        now = self._clock.monotonic()
        if is_running:
            self._waits_since = now
        if now - self._checked_at < CHECK_SECONDS:
            return
        self._checked_at = now
        found = self._find_run()
        run = None if found is None else self._runs.newest_attempt(found)
        if run is None or run.id != self._run_id:
            self.close()
        if run is None or run.state.is_final or self.is_ours:
            return
        is_late = now - self._waits_since > START_TIMEOUT_SECONDS
        if self._engine.start_if_needed(
            capacity=1, is_late=is_late, only_job=run.job_name, only_run=run.id
        ):
            self._run_id = run.id

    @property
    def is_ours(self) -> bool:
        """Whether an engine of this process was started for the run."""
        return self._run_id is not None

    def close(self) -> None:
        """Stop the engine, if it was started for this run."""
        if self._run_id is not None:
            self._run_id = None
            self._engine.stop(at_once=True)
