"""Real `tsuzuki` processes: started, observed through their log, paused, killed and stopped."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeVar

from sqlalchemy import text

from support.forked_program import ForkedProgram
from tsuzuki.store import settings
from tsuzuki.store.sql.database import Database

TIMEOUT_SECONDS = 120.0
"""Ends a hang; says nothing about speed."""
T = TypeVar("T")

QUICK = {
    "lease_renew_interval_seconds": 0.4,
    "lease_margin_seconds": 0.5,
    "lease_seconds": 2.0,
    "heartbeat_interval_seconds": 0.2,
    "continuation_retry_interval_seconds": 0.2,
    "worker_grace_seconds": 2.0,
    "worker_ttl_seconds": 1.5,
    "reassign_after_seconds": 0.5,
    "poll_interval_seconds": 0.5,
    "drain_timeout_seconds": 10.0,
    "kill_grace_seconds": 0.5,
}
"""In the same proportions as the defaults, but shorter."""


def be_quick(database: Database, **changes: float) -> None:
    with database.write() as connection:
        for key, value in {**QUICK, **changes}.items():
            settings.put(connection, key=key, value=value, actor="test")


def eventually(
    question: Callable[[], T | None], *, what: str, seconds: float = TIMEOUT_SECONDS
) -> T:
    """The first answer that is neither None nor False."""
    pause = threading.Event()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        answer = question()
        if answer is not None and answer is not False:
            return answer
        pause.wait(0.05)
    raise AssertionError(f"timed out after {seconds:g} s waiting for {what}")


class Daemon:
    """One process. Its log is JSON, so a test can wait for an event by name."""

    def __init__(
        self,
        url: str,
        folder: Path,
        *arguments: str,
        environ: Mapping[str, str],
        inside: Sequence[str] = (),
    ) -> None:
        environment = {**os.environ, "TSUZUKI_DATABASE_URL": url, **environ}
        command, *options = arguments or ("up",)
        # The tests of the API start it; the others need no FastAPI.
        alone = ["--no-web"] if command == "up" and "--listen" not in options else []
        words = [command, *alone, *options, "--log-format", "json", "-v"]
        reading, writing = os.pipe()
        self._stderr = os.fdopen(reading, encoding="utf-8")
        with os.fdopen(writing, "wb") as stderr:
            self.process = (
                _started(
                    [*inside, sys.executable, "-m", "tsuzuki", *words], folder, environment, stderr
                )
                if inside
                else ForkedProgram(words, cwd=folder, env=environment, stderr=stderr)
            )
        self.events: list[dict[str, Any]] = []
        self.other_lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        # A process that was killed may leave the pipe open in a process that it started, or at our end if it had not
        # taken its files over: only the reader knows when, if ever, it is to be closed.
        with self._stderr:
            for line in self._stderr:
                if line.startswith("{"):
                    self.events.append(json.loads(line))
                else:
                    self.other_lines.append(line)

    def wait_for(self, event: str) -> dict[str, Any]:
        return eventually(
            lambda: next((e for e in self.events if e.get("event") == event), None),
            what=f"{event!r} from {self.process.args!r}; it wrote {self.other_lines} {self.events[-5:]}",
        )

    def count(self, event: str) -> int:
        """Number of log events with this name so far."""
        return sum(one.get("event") == event for one in self.events)

    @property
    def worker_id(self) -> str:
        return str(self.wait_for("started")["worker"])

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def pause(self, database: Database) -> None:
        """SIGSTOP it between two transactions: inside one it would hold SQLite's write lock, or row locks
        of PostgreSQL, and block every other process."""
        pause = threading.Event()
        for _ in range(50):
            self.send(signal.SIGSTOP)
            if not holds_a_lock(database):
                return
            self.send(signal.SIGCONT)
            pause.wait(0.1)
        raise AssertionError("it was never outside a transaction")

    def kill(self) -> None:
        """SIGKILL, at any moment."""
        self.send(signal.SIGKILL)
        self.ended()

    def ended(self) -> int:
        """Wait for its end. Answers the exit code."""
        code = self.process.wait(TIMEOUT_SECONDS)
        self._reader.join(5)
        return code


def _started(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], stderr: IO[bytes]
) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=stderr,
        start_new_session=True,
    )


class Daemons:
    """Every process of a test; those left at its end are killed. `inside` is a command prefix that
    runs them in a namespace."""

    def __init__(
        self,
        url: str,
        folder: Path,
        *,
        environ: Mapping[str, str] | None = None,
        inside: Sequence[str] = (),
    ) -> None:
        self._url = url
        self._folder = folder
        self._environ = environ or {}
        self._inside = inside
        self._all: list[Daemon] = []

    def start(self, *arguments: str) -> Daemon:
        (daemon,) = self.start_together(arguments)
        return daemon

    def start_together(self, *each: Sequence[str]) -> list[Daemon]:
        """One process for each list of arguments. They start at the same time."""
        daemons = [
            Daemon(self._url, self._folder, *words, environ=self._environ, inside=self._inside)
            for words in each
        ]
        self._all += daemons
        for daemon in daemons:
            daemon.wait_for("started")
        return daemons

    def are_all_up(self) -> bool:
        """Whether every process is still running, so that no restart was needed."""
        return all(daemon.process.poll() is None for daemon in self._all)

    def stop_all(self) -> None:
        """Shut all down with SIGTERM; each must exit with 0."""
        for daemon in self._all:
            daemon.send(signal.SIGTERM)
        assert [daemon.ended() for daemon in self._all] == [0] * len(self._all)

    def kill_all(self) -> None:
        for daemon in self._all:
            if daemon.process.poll() is None:
                daemon.kill()


@contextmanager
def started_on(url: str, folder: Path, **options: Any) -> Iterator[Daemons]:
    """Processes for a test, killed at its end. `options` are those of `Daemons`."""
    daemons = Daemons(url, folder, **options)
    try:
        yield daemons
    finally:
        daemons.kill_all()


def holds_a_lock(database: Database) -> bool:
    """Whether a write transaction is open and idle."""
    if database.path is not None:
        probe = sqlite3.connect(database.path, timeout=1.0, isolation_level=None)
        try:
            probe.execute("BEGIN IMMEDIATE")
            probe.execute("ROLLBACK")
        except sqlite3.OperationalError:
            return True
        finally:
            probe.close()
        return False
    stuck = text(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        " AND state LIKE 'idle in transaction%' AND state_change < clock_timestamp() - interval '0.4 s'"
    )
    threading.Event().wait(0.5)
    with database.read() as connection:
        return bool(connection.execute(stuck).scalar_one())


def is_alive(pid: int) -> bool:
    """Whether a process exists and is not merely waiting to be reaped."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return status.rsplit(")", 1)[1].split()[0] != "Z"


def shell(script: str) -> Sequence[str]:
    return ["sh", "-c", script]
