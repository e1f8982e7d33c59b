"""What a function in a child may do: log and report progress through its worker, and write behind the fence on a
connection of its own."""

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from tsuzuki.engine.executors.isolated.frames import LOG_LINE, MESSAGE, STDERR_LINE, FrameWriter
from tsuzuki.engine.executors.isolated.messages import Message, encoded
from tsuzuki.engine.run_counts import require_counts
from tsuzuki.engine.task import Task
from tsuzuki.model.clock import SystemClock
from tsuzuki.model.errors import UsageError
from tsuzuki.store.sql.forks import on_fork

if TYPE_CHECKING:
    from tsuzuki.store.runs.progress import ProgressReport
    from tsuzuki.store.sql.database import Connection, Database

WATCH_SECONDS = 0.2
"""How often the transaction that holds SQLite's write lock is looked at."""

_KINDS = {"log": LOG_LINE, "stderr": STDERR_LINE}


class ChildRunIO:
    """Implements `RunIO` in a child, for one run: a thread that its function leaves behind must not take part in the
    next one. `replies` are put there by the thread that reads what the worker sends."""

    def __init__(self, writer: FrameWriter) -> None:
        self._writer = writer
        self._pid = os.getpid()
        self._database: Database | None = None
        self._transactions = 0
        self._is_closed = False
        self.replies: SimpleQueue[Mapping[str, Any]] = SimpleQueue()
        self.forget_parent()
        on_fork(self)

    def forget_parent(self) -> None:
        """Start with locks of its own, also in a forked process."""
        self._asking, self._sending = threading.Lock(), threading.Lock()

    def send(self, message: Message) -> None:
        """Does nothing once it is closed."""
        with self._sending:
            if not self._is_closed:
                self._writer.write(MESSAGE, encoded(message))

    def log(self, task: Task, stream: str, content: str | bytes) -> None:  # noqa: ARG002 -- as in `RunIO`
        text = content if isinstance(content, str) else content.decode("utf-8", "replace")
        self._writer.write(_KINDS[stream], text.encode("utf-8", "surrogatepass"))

    def has_space(self) -> bool:
        return True  # without space, writing waits

    def wait_for_space(self, seconds: float) -> bool:  # noqa: ARG002 -- as in `RunIO`
        return True

    def progress(self, task: Task, processed: int, total: int | None) -> None:  # noqa: ARG002 -- as in `RunIO`
        require_counts(processed, total)
        self.send({"progress": [processed, total]})

    @contextmanager
    def transaction(self, task: Task) -> "Iterator[Connection]":
        # The driver and the store are loaded here: most functions need neither.
        from tsuzuki.engine.worker.run_io import WorkerRunIO  # noqa: PLC0415

        self._require_main_process()
        self._transactions += 1
        try:
            grant = self._ask({"ask": "transaction"})
            database = self._opened(grant)
            output = _ChildOutput(self, task)
            run_io = WorkerRunIO(
                database=database, output=output, worker_id=lambda: str(grant["worker_id"])
            )
            with _watched(database, grant["seconds_max"]), run_io.transaction(task) as connection:
                yield connection
        finally:
            self._transactions -= 1
            self.send({"transaction_ended": True})

    def close(self) -> bool:
        """The run has ended: send nothing more for it, and give its connection back. False if a thread that the
        function has left behind still has a transaction."""
        with self._sending:
            self._is_closed = True
        database, self._database = self._database, None
        if database is not None:
            database.close()
        return not self._transactions

    def ask_progress(self, task: Task) -> "ProgressReport | None":
        """The run's last report, if it is not stored yet."""
        from tsuzuki.store.runs.progress import ProgressReport  # noqa: PLC0415

        reply = self._ask({"ask": "progress"})
        return ProgressReport(run=task.started, **reply) if reply else None

    def _ask(self, message: Message) -> Mapping[str, Any]:
        with self._asking:
            self.send(message)
            return self.replies.get()

    def _require_main_process(self) -> None:
        if os.getpid() != self._pid:
            raise UsageError(
                "run.transaction() was called in a forked child of the function's process",
                hint="Write in the function's own process.",
                code="transaction_in_fork",
            )

    def _opened(self, grant: Mapping[str, Any]) -> "Database":
        from tsuzuki.store.sql.database import open_database  # noqa: PLC0415

        if self._database is None:
            self._database = open_database(grant["url"], clock=SystemClock())
            self._database.name_sessions(grant["session"], is_key=True)
        return self._database


class _ChildOutput:
    """The part of the worker's output buffer that a transaction needs."""

    def __init__(self, run_io: ChildRunIO, task: Task) -> None:
        self._run_io = run_io
        self.log = run_io.log
        self.has_space = run_io.has_space
        self.wait_for_space = run_io.wait_for_space
        self.progress = run_io.progress
        self._task = task

    def unstored_progress(self, _run_id: int) -> "ProgressReport | None":
        return self._run_io.ask_progress(self._task)

    def progress_stored(self, reports: "Iterable[ProgressReport]") -> None:
        for report in reports:
            self._run_io.send({"progress_stored": report.number})


@contextmanager
def _watched(database: "Database", seconds_max: float) -> Iterator[None]:
    """On SQLite: have a thread name the transaction if it takes long, and end it after `seconds_max`."""
    if not database.is_sqlite:
        yield
        return
    from tsuzuki.engine.lock_watch import LockWatch  # noqa: PLC0415
    from tsuzuki.model.settings import EngineSettings  # noqa: PLC0415

    settings = EngineSettings(transaction_seconds_max=seconds_max)
    watch, ended = LockWatch(database=database, settings=lambda: settings), threading.Event()
    thread = threading.Thread(target=partial(_watch, watch.tick, ended), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _watch(tick: Callable[[], None], ended: threading.Event) -> None:
    while not ended.wait(WATCH_SECONDS):
        tick()
