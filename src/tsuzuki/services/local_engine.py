"""The engine of this process: starting it, running it in the foreground, and stopping it.

Every face starts an engine here and nowhere else. At most one runs at a time, and it is built when it is
started: most processes never need one.
"""

import gc
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from tsuzuki.engine.role import Role
from tsuzuki.model.clock import Clock
from tsuzuki.model.errors import Conflict
from tsuzuki.model.states import RunState
from tsuzuki.services.liveness import Liveness
from tsuzuki.services.runs import Runs
from tsuzuki.services.workers import Workers

if TYPE_CHECKING:
    from tsuzuki.engine.process import Engine

Functions: TypeAlias = Mapping[str, Callable[..., Any]]
BuildEngine: TypeAlias = "Callable[[Role, Functions], Engine]"

CAPACITY = 10
POLL_SECONDS = 0.2
CHECK_SECONDS = 2.0
HELD_UP_SECONDS = 5.0
"""A run that has waited so long for a live engine is executed here."""


class LocalEngine:
    """`build` makes an engine, not yet started, for a role and for functions that are defined here."""

    def __init__(
        self,
        *,
        build: BuildEngine,
        liveness: Liveness,
        workers: Workers,
        runs: Runs,
        clock: Clock,
    ) -> None:
        self._build = build
        self._liveness = liveness
        self._workers = workers
        self._runs = runs
        self._clock = clock
        self._engine: Engine | None = None
        self._newest: Engine | None = None

    @property
    def is_started(self) -> bool:
        return self._engine is not None

    # --- start and stop -------------------------------------------------------------------------

    def start(
        self,
        *,
        lead: bool = True,
        work: bool = True,
        capacity: int = CAPACITY,
        tags: Sequence[str] = (),
        functions: Functions | None = None,
    ) -> None:
        """Lead and work in threads of this process. Raises `Conflict` if it does already."""
        self._new_engine(
            Role(lead=lead, work=work, capacity=capacity, tags=frozenset(tags)), functions
        ).start()

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

    def _new_engine(self, role: Role, functions: Functions | None = None) -> "Engine":
        if self._engine is not None:
            raise Conflict("it is running already", hint="Call stop() first.")
        engine = self._build(role, functions or {})
        self._engine = self._newest = engine
        self._runs.wake_by(engine.wakeups.leader.wake)
        return engine

    # --- in the foreground ----------------------------------------------------------------------

    def serve(
        self,
        *,
        stop: threading.Event,
        lead: bool,
        work: bool,
        capacity: int,
        tags: Sequence[str],
        metrics_port: int | None = None,
        on_started: Callable[[], None],
        on_stopping: Callable[[], None],
    ) -> int:
        """Run until `stop` is set, or until an operator has drained a process that only works. Answers
        how many runs could not be stopped. Raises `SchemaMismatch` once a newer version has upgraded
        the database."""
        engine = self._new_engine(
            Role(lead=lead, work=work, capacity=capacity, tags=frozenset(tags))
        )
        freeze_loaded_objects()
        with _metrics_served(engine, metrics_port):
            engine.start()
            on_started()
            while not (stop.wait(POLL_SECONDS) or engine.outdated):
                if engine.drained.is_set() and not lead:
                    break
            if stop.is_set():
                on_stopping()
            self.stop()
        if engine.outdated is not None:
            raise engine.outdated
        return engine.worker.running

    def run_until_idle(
        self, *, stop: threading.Event, capacity: int = CAPACITY, tags: Sequence[str] = ()
    ) -> Counter[RunState]:
        """Run everything that is due, then stop. Answers how the runs ended. Raises `Conflict` if
        another process leads."""
        from tsuzuki.engine.run_until_idle import run_until_idle  # noqa: PLC0415 -- loads the engine

        engine = self._new_engine(Role(capacity=capacity, tags=frozenset(tags)))
        try:
            return run_until_idle(engine, stop=stop)
        finally:
            self._engine = None

    # --- only if there is no other --------------------------------------------------------------

    @contextmanager
    def ensure_running(self, *, on_start: Callable[[], None] = lambda: None) -> Iterator[None]:
        """While the block runs there is a leader and a worker: those that live, else an engine of this
        process, which runs whatever is due. `on_start` is called before it is built."""
        if self._liveness.has_live_leader_and_worker():
            yield
            return
        on_start()
        self.replace_dead_leader()
        try:
            yield
        finally:
            self.stop()

    def replace_dead_leader(self, *, capacity: int = CAPACITY) -> None:
        """Start an engine. A leader that died on this machine is stepped down first: its lease need not
        be waited for."""
        if self._liveness.leader_died_here():
            self._workers.step_down()
        self.start(capacity=capacity)

    def for_one_run(self) -> "OneRunEngine":
        return OneRunEngine(self, liveness=self._liveness, clock=self._clock)

    def has_left(self) -> bool:
        """Whether the worker of a started engine was drained and has left."""
        return self._engine is not None and self._engine.drained.is_set()

    def stop_accepting_once_busy(self) -> None:
        """Take no further run if one is executed here."""
        if self._engine is not None and self._engine.worker.running:
            self._engine.worker.stop_accepting()


class OneRunEngine:
    """Sees that one run is executed: by the engines that live, else by an engine of this process with one
    slot, which executes nothing else. `check` is called again and again while the run is waited for."""

    def __init__(self, engine: LocalEngine, *, liveness: Liveness, clock: Clock) -> None:
        self._engine = engine
        self._liveness = liveness
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
        elif not self._engine.is_started and now - self._checked_at >= CHECK_SECONDS:
            self._checked_at = now
            is_held_up = now - self._waits_since > HELD_UP_SECONDS
            if is_held_up or not self._liveness.has_live_leader_and_worker():
                self._is_ours = True
                self._engine.replace_dead_leader(capacity=1)

    def close(self) -> None:
        """Stop the engine, if it was started for this run."""
        if self._is_ours:
            self._is_ours = False
            self._engine.stop(at_once=True)


def freeze_loaded_objects() -> None:
    """Keep the garbage collector from scanning what a process has loaded before it starts to run: that
    stays for as long as the process lives, and scanning it was a quarter of the engine's own time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


@contextmanager
def _metrics_served(engine: "Engine", port: int | None) -> Iterator[None]:
    """Prometheus metrics on 127.0.0.1 while the block runs, if a port is given."""
    if port is None:
        yield
        return
    from prometheus_client import start_http_server  # noqa: PLC0415 -- slow to load, rarely needed

    server, thread = start_http_server(port, addr="127.0.0.1", registry=engine.metrics.registry)
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5.0)
