"""A real PgBouncer in front of the PostgreSQL of the tests."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from support.daemons import eventually
from support.databases import PostgresServer, database_name
from support.debian_packages import debian_program
from support.redis_server import free_port

CONFIGURATION = """\
[databases]
* = host={sockets} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
default_pool_size = 10
max_client_conn = 200
"""


class PgBouncer:
    """Its port is free to be connected to when this is given."""

    def __init__(self, port: int) -> None:
        self.port = port

    def url(self, direct_url: str) -> str:
        """URL of a database through the pooler."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database_name(direct_url)}"


@contextmanager
def pgbouncer(server: PostgresServer, *, mode: str) -> Iterator[PgBouncer]:
    program = debian_program("usr/sbin/pgbouncer", "pgbouncer", "libc-ares2", "libevent-2.1-7")
    folder = Path(tempfile.mkdtemp(prefix="tsuzuki-pgbouncer-"))
    port = free_port()
    file = folder / "pgbouncer.ini"
    file.write_text(
        CONFIGURATION.format(sockets=server.socket_file.parent, port=port, mode=mode),
        encoding="utf-8",
    )
    # It refuses to run as root.
    user = server.server.system_user if os.getuid() == 0 else None
    folder.chmod(0o755)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [program.path, file], env=program.environ, user=user, stdout=log, stderr=log
        )
    try:
        eventually(lambda: _accepts(port), what=f"PgBouncer, which wrote {folder / 'log'}")
        yield PgBouncer(port)
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _accepts(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False
