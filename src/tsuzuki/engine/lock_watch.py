"""Names who holds SQLite's write lock for long, in the log and beside the file, and ends a run's transaction that takes
too long.

While one transaction holds the lock, no process can write. Reading works meanwhile.
"""

import os
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

from tsuzuki.engine.log import log
from tsuzuki.model.settings import EngineSettings
from tsuzuki.store import leadership, workers
from tsuzuki.store.sql import sqlite_lock
from tsuzuki.store.sql.database import Database
from tsuzuki.store.sql.sqlite_lock import LockHolder
from tsuzuki.store.sql.write_hold import WriteHold

LOCK_WAIT_SECONDS = 2.0
"""A wait that is longer is logged."""

HOLD_LONG_SECONDS = 5.0
"""Who holds the lock for longer is named to other processes."""


class LockWatch:
    """`tick` is called by a loop that does not write."""

    def __init__(self, *, database: Database, settings: Callable[[], EngineSettings]) -> None:
        self._database = database
        self._settings = settings
        self._is_logged = False
        self._is_named = False
        self._named: WriteHold | None = None

    def tick(self) -> None:
        if self._database.path is None:
            return
        hold = self._database.write_hold
        if hold is not None:
            self._watch(hold)
        self._watch_waiting()

    # --- a transaction of this process ------------------------------------------------------------

    def _watch(self, hold: WriteHold) -> None:
        seconds = self._database.clock.monotonic() - hold.taken_at
        if seconds >= HOLD_LONG_SECONDS and hold is not self._named:
            self._named = hold
            self._name(hold, seconds)
        limit = self._settings().transaction_seconds_max
        if seconds >= limit and hold.end(seconds_max=limit):
            log.error(
                "transaction rolled back",
                run=hold.user.run_id,
                job=hold.user.job,
                seconds=round(seconds, 1),
                hint="The transaction held SQLite's write lock for longer than transaction_seconds_max.",
            )

    def _name(self, hold: WriteHold, seconds: float) -> None:
        log.warning(
            "transaction holds the write lock",
            run=hold.user.run_id,
            job=hold.user.job,
            purpose=hold.purpose or None,
            pid=os.getpid(),
            seconds=round(seconds, 1),
            hint="No other process can write. Write in several short transactions.",
        )
        holder = LockHolder(
            pid=os.getpid(),
            command=sqlite_lock.command_of(os.getpid()),
            run_id=hold.user.run_id,
            job=hold.user.job,
            purpose=hold.purpose,
            since=self._since(seconds),
        )
        file = self._file
        hold.announce(
            lambda: sqlite_lock.write_note(file, holder),
            on_finish=lambda: sqlite_lock.remove_note(file),
        )

    # --- waiting for another process --------------------------------------------------------------

    def _watch_waiting(self) -> None:
        waited = self._database.lock_wait_seconds()
        if waited < LOCK_WAIT_SECONDS:
            self._is_logged = self._is_named = False
            sqlite_lock.remove_old_note(self._file)
            return
        if not self._is_logged:
            self._is_logged = True
            self._log(waited)
        if waited >= HOLD_LONG_SECONDS and not self._is_named:
            self._is_named = True
            self._name_other(waited)

    def _name_other(self, waited: float) -> None:
        """Other than a process of ours, which names itself: a database browser, a migration, a paused process."""
        holder = sqlite_lock.lock_holder(self._file)
        if holder is None:
            return
        if holder.since is None:
            holder = LockHolder(pid=holder.pid, command=holder.command, since=self._since(waited))
            sqlite_lock.write_note(self._file, holder)
        log.warning(
            "write lock held for a long time",
            holder_pid=holder.pid,
            holder_command=holder.command or None,
            run=holder.run_id,
            job=holder.job,
            purpose=holder.purpose or None,
            since=holder.since,
        )

    def _log(self, waited: float) -> None:
        with self._database.read() as connection:
            lead = leadership.current(connection)
            process = workers.get(connection, lead.holder or "")
        log.warning(
            "waiting for the write lock",
            database=str(self._database.path),
            seconds=round(waited, 1),
            leader=lead.holder,
            leader_host=process.host if process else None,
            leader_pid=process.pid if process else None,
            leading_since=lead.taken_at,
            lease_expires_at=lead.lease_expires_at,
            hint="A process stopped during a write holds the lock until it resumes or ends.",
        )

    @property
    def _file(self) -> Path:
        path = self._database.path
        if path is None:
            raise ValueError("only an SQLite file has a write lock")
        return path

    def _since(self, seconds: float) -> datetime:
        return self._database.clock.now() - timedelta(seconds=seconds)
