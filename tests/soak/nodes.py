"""Two nodes: groups of real processes, each with a network path of its own to PostgreSQL and Redis."""

import json
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from support.daemons import Daemon
from support.databases import PostgresServer, database_name
from support.proxy import Proxy
from support.redis_server import RedisServer
from tsuzuki.collectors.codeindex.index_file import FOLDER_VARIABLE

ROLES = ("up", "worker")
RESTARTED = frozenset({5, 74})
"""Exit codes with which a process gives up on a database that it cannot reach; a service manager starts it again."""


@dataclass(kw_only=True)
class Node:
    """The processes of one machine. `running` has one for each role, unless it was killed and is not back yet."""

    name: str
    folder: Path
    database_url: str
    database: Proxy
    redis: Proxy
    environ: dict[str, str] = field(default_factory=dict)
    """More variables of its processes."""

    running: dict[str, Daemon] = field(default_factory=dict)
    started: list[tuple[str, Daemon]] = field(default_factory=list)

    def start(self, *roles: str) -> None:
        """Start what does not run."""
        for role in roles or ROLES:
            if role not in self.running:
                self.running[role] = self._daemon(role)
                self.started.append((role, self.running[role]))

    def kill(self, *roles: str) -> None:
        for role in roles or ROLES:
            if (daemon := self.running.pop(role, None)) is not None:
                daemon.kill()

    def send(self, number: signal.Signals, *roles: str) -> None:
        for role in roles or ROLES:
            if role in self.running:
                self.running[role].send(number)

    def restart_ended(self) -> list[str]:
        """Start again what gave up, as a service manager does. Answers what ended in any other way."""
        wrong = []
        for role, daemon in [*self.running.items()]:
            if (code := daemon.process.poll()) is None:
                continue
            if code not in RESTARTED:
                wrong.append(f"{self.name} {role} ended with {code}: {daemon.other_lines[-20:]}")
            daemon.ended()
            del self.running[role]
            self.start(role)
        return wrong

    def mend(self) -> None:
        """Undo every fault: the network flows, nothing is paused, and every process runs."""
        self.database.mend()
        self.redis.mend()
        self.send(signal.SIGCONT)
        self.start()

    def keep_logs(self, folder: Path) -> None:
        for number, (role, daemon) in enumerate(self.started):
            lines = [json.dumps(event) for event in daemon.events] + daemon.other_lines
            path = folder / f"{self.name}-{number:02}-{role}-{daemon.process.pid}.log"
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def _daemon(self, role: str) -> Daemon:
        environ = {
            "TSUZUKI_REDIS_URL": f"redis://127.0.0.1:{self.redis.port}/0",
            FOLDER_VARIABLE: str(self.folder.parent / "indexes"),
            **self.environ,
        }
        return Daemon(self.database_url, self.folder, role, environ=environ)


@contextmanager
def two_nodes(
    folder: Path, server: PostgresServer, url: str, redis: RedisServer, environ: dict[str, str]
) -> Iterator[list[Node]]:
    """Both in one workspace, as with a shared configuration. Their processes are killed at the end."""
    with ExitStack() as stack:
        nodes = []
        for name in ("a", "b"):
            database = stack.enter_context(Proxy(server.socket_file))
            node = Node(
                name=name,
                folder=folder,
                database_url=database.url(database_name(url)),
                database=database,
                redis=stack.enter_context(Proxy(redis.port)),
                environ=environ,
            )
            stack.callback(node.kill)
            nodes.append(node)
        yield nodes
