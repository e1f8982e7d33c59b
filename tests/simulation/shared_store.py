"""The one store of a simulation: a real SQLite database in memory, as new for every seed.

It is migrated once. A seed lives inside one transaction that is never committed, and what its processes take for
transactions are savepoints in it: so the next seed begins with a rollback, and every statement stays prepared.
Triggers of our own write down every birth and every change of a run beside the history the engine keeps, so
that the laws can be held against what happened and not only against what was told.
"""

import sqlite3
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import cache

from sqlalchemy import Connection, StaticPool, create_engine

from simulation.jobs import JOBS, SETTINGS
from support.makers import add_job
from support.moving_clock import MovingClock
from tsuzuki.model.clock import Clock
from tsuzuki.store import settings
from tsuzuki.store.schema.migrate import upgrade
from tsuzuki.store.sql.database import Database
from tsuzuki.store.sql.types import to_text

WITNESS = """
CREATE TABLE sim_rows (
    id INTEGER PRIMARY KEY, run_id INTEGER, worker_id TEXT, version INTEGER, epoch INTEGER, page INTEGER
);
CREATE TABLE sim_witness (
    seq INTEGER PRIMARY KEY, run_id INTEGER, before_state TEXT, state TEXT, before_version INTEGER,
    version INTEGER, moved_as TEXT, moved_by TEXT, epoch INTEGER, reason TEXT, worker_id TEXT
);
CREATE TABLE sim_doubts (run_id INTEGER, is_confirmed INTEGER);
CREATE TRIGGER sim_doubt AFTER UPDATE OF continuation_state ON job_runs
WHEN NEW.state = 'RUNNING' AND OLD.continuation_state <> NEW.continuation_state BEGIN
    INSERT INTO sim_doubts VALUES (NEW.id, NEW.continuation_state = 'NONE');
END;
CREATE TRIGGER sim_birth AFTER INSERT ON job_runs BEGIN
    INSERT INTO sim_witness (run_id, state, version) VALUES (NEW.id, NEW.state, NEW.version);
END;
CREATE TRIGGER sim_move AFTER UPDATE OF state, version ON job_runs
WHEN OLD.state <> NEW.state OR OLD.version <> NEW.version BEGIN
    INSERT INTO sim_witness (run_id, before_state, state, before_version, version, moved_as, moved_by,
                             epoch, reason, worker_id)
    VALUES (NEW.id, OLD.state, NEW.state, OLD.version, NEW.version, NEW.moved_as, NEW.moved_by,
            NEW.moved_epoch, NEW.reason, NEW.assigned_worker_id);
END;
"""


class SharedStore:
    """One per process of the tests; `renew` makes it as new."""

    def __init__(self) -> None:
        self.raw = sqlite3.connect(":memory:", check_same_thread=False, cached_statements=512)
        self.raw.isolation_level = None
        self.raw.execute("PRAGMA foreign_keys = ON")
        self._clock: Clock = MovingClock()
        self._is_changing = False
        # Once: a function that is replaced makes the driver prepare every statement anew.
        self.raw.create_function("tsuzuki_now", 1, self._now)
        self.engine = create_engine("sqlite://", creator=lambda: self.raw, poolclass=StaticPool)
        self._fill()
        self.connection = self.engine.connect()
        self.connection.begin()
        self.raw.execute("BEGIN")

    def renew(self, *, scheduled: Collection[int], guarded: bool = True) -> None:
        """As it was before anybody used it. Only the jobs `scheduled` keep their schedules. Not
        `guarded`, it refuses nothing by itself."""
        self.raw.execute("ROLLBACK")
        self.raw.execute("BEGIN")
        kept = ", ".join(map(str, sorted(scheduled)))
        self.raw.execute(f"UPDATE job_definitions SET schedule = NULL WHERE id NOT IN ({kept})")
        if not guarded:
            self._drop_guards()

    def lend(self, clock: Clock) -> None:
        """From now on this is the database's clock."""
        self._clock = clock

    @contextmanager
    def look(self) -> Iterator[Connection]:
        """What is read in one go. Whoever only looks changes nothing."""
        changes = self.raw.total_changes
        yield self.connection
        if self.raw.total_changes != changes:
            raise RuntimeError("somebody wrote who said that he only reads")

    @contextmanager
    def change(self) -> Iterator[Connection]:
        """A transaction that is kept, or as if it had never been if anything is raised."""
        if self._is_changing:
            raise RuntimeError("a write transaction was opened inside another one")
        self._is_changing = True
        self.raw.execute("SAVEPOINT change")
        try:
            yield self.connection
        except BaseException:
            self.raw.execute("ROLLBACK TO change")
            raise
        finally:
            self.raw.execute("RELEASE change")
            self._is_changing = False

    def _now(self, offset_seconds: float) -> str:
        return to_text(self._clock.now() + timedelta(seconds=offset_seconds))

    def _fill(self) -> None:
        database = Database(self.engine, clock=self._clock)
        upgrade(database)
        self.raw.executescript(WITNESS)
        for spec in JOBS:
            add_job(database, spec)
        with database.write() as connection:
            for key, value in SETTINGS.items():
                settings.put(connection, key=key, value=value, actor="simulation")

    def _drop_guards(self) -> None:
        guards = self.raw.execute(
            "SELECT name FROM sqlite_master WHERE type = 'trigger' AND name NOT LIKE 'sim_%'"
            " AND name NOT LIKE 'job_runs_history%'"
        ).fetchall()
        for (name,) in guards:
            self.raw.execute(f"DROP TRIGGER {name}")


@cache
def shared_store() -> SharedStore:
    return SharedStore()
