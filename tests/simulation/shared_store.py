"""The one store of a simulation: a real SQLite database in memory, reset for every seed.

It is migrated once. A seed runs inside one transaction that is never committed, and the transactions of its
processes are savepoints in it: so the next seed begins with a rollback, and statements stay prepared.
Triggers of our own record every new run and every change of one, independently of the engine's history, so that the
invariants check what happened and not only what the engine wrote about it.
"""

import json
import sqlite3
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from types import MappingProxyType

from sqlalchemy import Connection, StaticPool, create_engine

from simulation.jobs import JOBS, SETTINGS
from simulation.row_locks import LOCKS_SQL, RowLocks, SeenConnection
from support.factories import add_job
from support.moving_clock import MovingClock
from tsuzuki.model.clock import Clock
from tsuzuki.store import settings
from tsuzuki.store.schema.migrate import upgrade
from tsuzuki.store.sql.database import Database
from tsuzuki.store.sql.stored_values import to_text

NO_CHANGES: Mapping[str, float] = MappingProxyType({})

OBSERVER_SQL = """
CREATE TABLE sim_rows (
    id INTEGER PRIMARY KEY, run_id INTEGER, worker_id TEXT, version INTEGER, epoch INTEGER, page INTEGER
);
CREATE TABLE sim_changes (
    seq INTEGER PRIMARY KEY, run_id INTEGER, before_state TEXT, state TEXT, before_version INTEGER,
    version INTEGER, moved_as TEXT, moved_by TEXT, epoch INTEGER, reason TEXT, worker_id TEXT
);
CREATE TABLE sim_continuations (run_id INTEGER, is_confirmed INTEGER);
CREATE TRIGGER sim_continuation AFTER UPDATE OF continuation_state ON tsuzuki_job_runs
WHEN NEW.state = 'RUNNING' AND OLD.continuation_state <> NEW.continuation_state BEGIN
    INSERT INTO sim_continuations VALUES (NEW.id, NEW.continuation_state = 'NONE');
END;
CREATE TABLE sim_cancel_requests (run_id INTEGER);
CREATE TRIGGER sim_cancel_request AFTER INSERT ON tsuzuki_run_cancel_requests
WHEN (SELECT finished_at IS NULL FROM tsuzuki_job_runs WHERE id = NEW.run_id) BEGIN
    INSERT INTO sim_cancel_requests VALUES (NEW.run_id);
END;
CREATE TABLE sim_definitions (
    seq INTEGER PRIMARY KEY, job_id INTEGER, changed_at TEXT, is_deleted INTEGER
);
CREATE TRIGGER sim_definition AFTER UPDATE OF version ON tsuzuki_job_definitions BEGIN
    INSERT INTO sim_definitions (job_id, changed_at, is_deleted)
    VALUES (NEW.id, NEW.updated_at, NEW.deleted_at IS NOT NULL);
END;
CREATE TRIGGER sim_new_definition AFTER INSERT ON tsuzuki_job_definitions BEGIN
    INSERT INTO sim_definitions (job_id, changed_at, is_deleted) VALUES (NEW.id, NEW.updated_at, 0);
END;
CREATE TRIGGER sim_progress AFTER UPDATE OF progress_processed ON tsuzuki_job_runs
WHEN NEW.progress_processed < OLD.progress_processed BEGIN
    SELECT RAISE(ABORT, 'the progress of a run went back');
END;
CREATE TRIGGER sim_created AFTER INSERT ON tsuzuki_job_runs BEGIN
    INSERT INTO sim_changes (run_id, state, version) VALUES (NEW.id, NEW.state, NEW.version);
END;
CREATE TRIGGER sim_move AFTER UPDATE OF state, version ON tsuzuki_job_runs
WHEN OLD.state <> NEW.state OR OLD.version <> NEW.version BEGIN
    INSERT INTO sim_changes (run_id, before_state, state, before_version, version, moved_as, moved_by,
                             epoch, reason, worker_id)
    VALUES (NEW.id, OLD.state, NEW.state, OLD.version, NEW.version, NEW.moved_as, NEW.moved_by,
            NEW.moved_epoch, NEW.reason, NEW.assigned_worker_id);
END;
"""


class SharedStore:
    """One per test process."""

    def __init__(self) -> None:
        self.raw = sqlite3.connect(
            ":memory:", check_same_thread=False, cached_statements=512, factory=SeenConnection
        )
        self.raw.isolation_level = None
        self.raw.execute("PRAGMA foreign_keys = ON")
        self._clock: Clock = MovingClock()
        self._is_writing = False
        # Once: replacing a function makes the driver prepare every statement again.
        self.raw.create_function("tsuzuki_now", 1, self._now)
        self.engine = create_engine("sqlite://", creator=lambda: self.raw, poolclass=StaticPool)
        self.row_locks = RowLocks(self.raw, self.engine.dialect)
        self._fill()
        self.connection = self.engine.connect()
        self.connection.begin()
        self.raw.execute("BEGIN")

    def reset(
        self,
        *,
        scheduled: Collection[int],
        guarded: bool = True,
        settings: Mapping[str, float] = NO_CHANGES,
    ) -> None:
        """Undo everything. Only the jobs `scheduled` keep their schedules. Unless `guarded`, the
        triggers that refuse illegal moves are dropped. `settings` replace those of every simulation."""
        self.raw.execute("ROLLBACK")
        self.raw.execute("BEGIN")
        kept = ", ".join(map(str, sorted(scheduled)))
        self.raw.execute(
            f"UPDATE tsuzuki_job_definitions SET schedule = NULL WHERE id NOT IN ({kept})"
        )
        for key, value in settings.items():
            self.raw.execute(
                "UPDATE tsuzuki_settings SET value = ? WHERE key = ?", (json.dumps(value), key)
            )
        if not guarded:
            self._drop_guards()

    def use_clock(self, clock: Clock) -> None:
        """Make this the database's clock."""
        self._clock = clock

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A read-only transaction; a write in it is a bug."""
        changes = self.raw.total_changes
        yield self.connection
        if self.raw.total_changes != changes:
            raise RuntimeError("a read-only transaction has written")

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction: a savepoint, rolled back if anything is raised."""
        if self._is_writing:
            raise RuntimeError("a write transaction was opened inside another one")
        self._is_writing = True
        self.raw.execute("SAVEPOINT write_transaction")
        try:
            yield self.connection
        except BaseException:
            self.raw.execute("ROLLBACK TO write_transaction")
            raise
        finally:
            self.raw.execute("RELEASE write_transaction")
            self._is_writing = False

    @contextmanager
    def left_open(self) -> Iterator[None]:
        """Inside a transaction that has written nothing yet: others have theirs meanwhile."""
        self.raw.execute("RELEASE write_transaction")
        self._is_writing = False
        try:
            yield
        finally:
            self._is_writing = True
            self.raw.execute("SAVEPOINT write_transaction")

    def _now(self, offset_seconds: float) -> str:
        return to_text(self._clock.now() + timedelta(seconds=offset_seconds))

    def _fill(self) -> None:
        database = Database(self.engine, clock=self._clock)
        upgrade(database)
        self.raw.executescript(OBSERVER_SQL + LOCKS_SQL)
        for spec in JOBS:
            add_job(database, spec)
        with database.write() as connection:
            for key, value in SETTINGS.items():
                settings.put(connection, key=key, value=value, actor="simulation")

    def _drop_guards(self) -> None:
        guards = self.raw.execute(
            "SELECT name FROM sqlite_master WHERE type = 'trigger' AND name NOT LIKE 'sim_%'"
            " AND name NOT LIKE 'tsuzuki_job_runs_history%'"
        ).fetchall()
        for (name,) in guards:
            self.raw.execute(f"DROP TRIGGER {name}")


@cache
def shared_store() -> SharedStore:
    return SharedStore()
