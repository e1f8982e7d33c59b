"""The worker's part of a transaction that a child opens on a connection of its own."""

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import uuid4

from tsuzuki.model.errors import TsuzukiError


class ReportedProgress(Protocol):
    """A report of progress."""

    @property
    def processed(self) -> int: ...

    @property
    def total(self) -> int | None: ...

    @property
    def number(self) -> int: ...


class ProgressReports(Protocol):
    """The reports of progress that a worker has taken."""

    def unstored_progress(self, run_id: int) -> ReportedProgress | None: ...

    def number_stored(self, run_id: int, number: int) -> None: ...


@dataclass(frozen=True, kw_only=True)
class ChildDatabase:
    """What children need of their worker to write: where the database is, and the worker's own state."""

    url: str
    worker_id: Callable[[], str]
    seconds_max: Callable[[], float]
    """How long a transaction of a run may hold SQLite's write lock."""
    reserve_connection: Callable[[], bool]
    release_connection: Callable[[], None]
    end_sessions: Callable[[str], None]
    reports: Callable[[], ProgressReports]


class ChildTransactions:
    """Of one run."""

    def __init__(self, database: ChildDatabase, run_id: int) -> None:
        self._database = database
        self._run_id = run_id
        self._session = f"run {uuid4().hex[:16]}"
        self._has_connection = False
        self._open = 0

    @property
    def is_open(self) -> bool:
        """Whether one is open, or about to be: then the run's output is read even if there is no space."""
        return self._open > 0

    def ask(self) -> None:
        """A thread of the child wants one; others may have theirs."""
        self._open += 1

    def end_one(self) -> None:
        self._open -= 1

    def grant(self) -> dict[str, Any] | None:
        """What a child needs to open one; None while this process has no connection left for it."""
        if not self._has_connection and not self._database.reserve_connection():
            return None
        self._has_connection = True
        return {
            "url": self._database.url,
            "worker_id": self._database.worker_id(),
            "seconds_max": self._database.seconds_max(),
            "session": self._session,
        }

    def progress(self) -> dict[str, Any]:
        """The last report, to be stored with the transaction; nothing if it is stored."""
        report = self._database.reports().unstored_progress(self._run_id)
        if report is None:
            return {}
        return {
            "processed": report.processed,
            "total": report.total,
            "number": report.number,
        }

    def stored(self, number: int) -> None:
        self._database.reports().number_stored(self._run_id, number)

    def end(self, *, was_killed: bool) -> None:
        """The run has ended here. What a killed child has left on the server is ended too."""
        if not self._has_connection:
            return
        self._has_connection = False
        self._database.release_connection()
        if was_killed:
            threading.Thread(target=self._end_sessions, daemon=True).start()

    def _end_sessions(self) -> None:
        with suppress(TsuzukiError):  # unreachable: then the server ends them when it notices
            self._database.end_sessions(self._session)
