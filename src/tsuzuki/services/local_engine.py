"""The engine of this process: start it, run it in the foreground, and stop it.

This is the only place where interfaces start an engine. At most one runs at a time, and it is built when it is
started, because most processes never need one.
"""

import logging
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from tsuzuki.engine.role import ProcessRole
from tsuzuki.model.errors import Conflict, DatabaseReplaced
from tsuzuki.model.job import Job
from tsuzuki.model.loop_failure import LoopFailure
from tsuzuki.model.run import NewRun
from tsuzuki.model.states import RunState
from tsuzuki.model.worker import DEFAULT_CAPACITY
from tsuzuki.services.garbage_collection import freeze_loaded_objects
from tsuzuki.services.liveness import Liveness
from tsuzuki.services.metrics_server import metrics_served
from tsuzuki.services.runs import Runs
from tsuzuki.services.workers import Workers

if TYPE_CHECKING:
    from tsuzuki.engine.process import Engine

Functions: TypeAlias = Mapping[str, Callable[..., Any]]
BuildEngine: TypeAlias = "Callable[[ProcessRole, Functions], Engine]"

POLL_SECONDS = 0.2


class LocalEngine:
    """`build` makes an engine, not yet started, for a role and for functions that are defined here."""

    def __init__(
        self,
        *,
        build: BuildEngine,
        liveness: Liveness,
        workers: Workers,
        runs: Runs,
    ) -> None:
        self._build = build
        self._liveness = liveness
        self._workers = workers
        self._runs = runs
        self._engine: Engine | None = None
        self._newest: Engine | None = None

    @property
    def is_started(self) -> bool:
        return self._engine is not None

    @property
    def is_alive(self) -> bool:
        """Whether nothing of a started engine has ended by itself."""
        return self._engine is None or self._engine.is_alive

    def failing_loops(self) -> list[LoopFailure] | None:
        """The loops of a started engine that keep failing; None without an engine."""
        return None if self._engine is None else self._engine.health.failing()

    # --- start and stop -------------------------------------------------------------------------

    def start(
        self,
        *,
        lead: bool = True,
        work: bool = True,
        capacity: int = DEFAULT_CAPACITY,
        tags: Sequence[str] = (),
        functions: Functions | None = None,
        only_job: str | None = None,
        only_run: int | None = None,
        program: str | None = None,
    ) -> None:
        """Lead and work in threads of this process. Raises `Conflict` if it does already. With `only_job`
        no leader assigns runs of other jobs to this process, with `only_run` no other run. `program` is whose
        `__main__` this process has."""
        role = ProcessRole(
            lead=lead,
            work=work,
            capacity=capacity,
            tags=frozenset(tags),
            only_job=only_job,
            only_run=only_run,
            program=program,
        )
        engine = self._new_engine(role, functions)
        with self._forgotten_if_it_fails():
            engine.start()

    def stop(self, *, at_once: bool = False) -> None:
        """Stop in good order: start nothing new, wait for what runs, hand back the rest. `at_once` does
        not wait. Without an engine nothing happens."""
        engine, self._engine = self._engine, None
        if engine is not None:
            if at_once:
                engine.hurry()
            engine.shut_down()

    def hurry(self) -> None:
        """Do not wait for what runs, in a stop that is under way or to come."""
        if self._newest is not None:
            self._newest.hurry()

    def _new_engine(self, role: ProcessRole, functions: Functions | None = None) -> "Engine":
        if self._engine is not None:
            raise Conflict("the engine is already running", hint="Call stop() first.")
        engine = self._build(role, functions or {})
        self._engine = self._newest = engine
        self._runs.wake_by(engine.wakeups.leader.wake)
        return engine

    @contextmanager
    def _forgotten_if_it_fails(self) -> Iterator[None]:
        """An engine that could not start is none: it can be started again."""
        try:
            yield
        except BaseException:
            self._engine = None
            raise

    # --- in the foreground ----------------------------------------------------------------------

    def serve(
        self,
        *,
        stop: threading.Event,
        lead: bool,
        work: bool,
        capacity: int,
        tags: Sequence[str],
        metrics_address: tuple[str, int] | None = None,
        start_by: Callable[[Callable[[], None]], None],
        on_stopping: Callable[[], None],
    ) -> int:
        """Run until `stop` is set, or until an operator has drained a process that only works. Returns
        how many runs could not be stopped. Raises `SchemaMismatch` once a newer version has upgraded
        the database, and `DatabaseReplaced` once its file is gone. `start_by` is given the start: it may call it
        again after a failure."""
        engine = self._new_engine(
            ProcessRole(lead=lead, work=work, capacity=capacity, tags=frozenset(tags))
        )
        freeze_loaded_objects()
        with self._forgotten_if_it_fails(), metrics_served(engine.metrics, metrics_address):
            start_by(engine.start)
            while not (stop.wait(POLL_SECONDS) or engine.fatal):
                if engine.drained.is_set() and not lead:
                    break
            if stop.is_set():
                on_stopping()
            self.stop(at_once=isinstance(engine.fatal, DatabaseReplaced))
        if engine.fatal is not None:
            raise engine.fatal
        return engine.worker.running

    def run_until_idle(
        self,
        *,
        stop: threading.Event,
        capacity: int = DEFAULT_CAPACITY,
        tags: Sequence[str] = (),
        functions: Functions | None = None,
        program: str | None = None,
    ) -> Counter[RunState]:
        """Run everything that is due, then stop. Returns how the runs ended. Raises `Conflict` if
        another process leads."""
        from tsuzuki.engine.run_until_idle import run_until_idle  # noqa: PLC0415 -- loads the engine

        role = ProcessRole(capacity=capacity, tags=frozenset(tags), program=program)
        engine = self._new_engine(role, functions)
        try:
            return run_until_idle(engine, stop=stop)
        finally:
            self._engine = None

    def run_one(self, job: Job, wanted: NewRun, *, stop: threading.Event) -> int:
        """Create a run of a job and execute it here, and nothing else. Returns its id; it has ended unless `stop` was
        set. Raises `Conflict` if another process leads."""
        from tsuzuki.engine.run_one import run_one  # noqa: PLC0415 -- loads the engine

        engine = self._new_engine(ProcessRole(lead=False, capacity=1, only_job=job.spec.name))
        try:
            return run_one(engine, job, wanted, stop=stop)
        finally:
            self._engine = None

    # --- only if there is no other --------------------------------------------------------------

    def start_if_needed(
        self,
        *,
        work: bool = True,
        capacity: int = DEFAULT_CAPACITY,
        is_late: bool = False,
        only_job: str | None = None,
        only_run: int | None = None,
        on_start: Callable[[], None] = lambda: None,
    ) -> bool:
        """Start an engine here, unless one of this process runs or a leader and a worker live elsewhere. If
        a run `is_late`, those elsewhere do not count: they have not started it in time. Returns whether it
        was started; `on_start` is called before it is built. Workers that were started for one job do not count:
        they may leave at any moment. Nor do workers that cannot execute `only_job`. Without `work` only a leader is
        needed.

        A leader that died on this machine is deposed first: its lease need not be waited for."""
        if self.is_started:
            return False
        if not is_late and self._is_alive_elsewhere(work, only_job):
            return False
        on_start()
        if (term := self._liveness.term_of_leader_that_died_here()) is not None:
            self._workers.depose(term)
        self.start(work=work, capacity=capacity, only_job=only_job, only_run=only_run)
        return True

    def _is_alive_elsewhere(self, work: bool, only_job: str | None) -> bool:
        if not work:
            return self._liveness.has_live_leader()
        return self._liveness.has_live_leader_and_worker(only_job, lasting=True)

    @contextmanager
    def ensure_running(
        self,
        *,
        work: bool = True,
        only_job: str | None = None,
        only_run: int | None = None,
        on_start: Callable[[], None] = lambda: None,
    ) -> Iterator[bool]:
        """While the block runs there is a leader and a worker: those that live, else an engine of this
        process, which runs all that is due, or with `only_job` what is due of that job, or with `only_run` that run
        of it. Without `work` there is a leader. Tells whether it is of this process."""
        is_ours = self.start_if_needed(
            work=work, only_job=only_job, only_run=only_run, on_start=on_start
        )
        try:
            yield is_ours
        finally:
            if is_ours:
                self.stop()

    def metrics_text(self) -> tuple[str, bytes]:
        """The content type and the text of what was counted here, for Prometheus; no series without an engine."""
        from prometheus_client import CONTENT_TYPE_LATEST, generate_latest  # noqa: PLC0415 -- rarely needed

        engine = self._engine
        return CONTENT_TYPE_LATEST, generate_latest(engine.metrics.registry) if engine else b""


def log_to_stderr(*, level: int, as_json: bool = False) -> None:
    """From now on the engine's log is written to stderr, in place of where it was written before; and so is
    what other libraries log."""
    from tsuzuki.engine.log import JsonLines, TextLines  # noqa: PLC0415 - structlog loads rich
    from tsuzuki.engine.log_capture import capture  # noqa: PLC0415 - structlog loads rich

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if as_json else TextLines())
    logger = logging.getLogger("tsuzuki")
    logger.handlers = [handler]
    logger.propagate = False
    logger.setLevel(level)
    capture(handler)
