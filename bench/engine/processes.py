"""Real `tsuzuki` processes on their own database, for figures that are measured from outside."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.engine.stores import Store, Stores
from tsuzuki.wiring.application import Application, opened

TIMEOUT_SECONDS = 120.0
TSUZUKI = ("-m", "tsuzuki")
REPOSITORY = Path(__file__).parents[2]


@contextmanager
def database(name: str) -> Iterator[str]:
    """The URL of a new database: "sqlite" or "postgresql", both with durable commits."""
    store = Store.POSTGRESQL if name == "postgresql" else Store.SQLITE
    with Stores() as stores, stores.fresh(store) as url:
        yield url


class Processes:
    """Started processes; those left at the end are killed."""

    def __init__(self, url: str, folder: Path) -> None:
        self._url = url
        self._folder = folder
        self._all: list[subprocess.Popen[bytes]] = []

    def start(self, *arguments: str, program: Sequence[str] = TSUZUKI) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, *program, *arguments],
            cwd=self._folder,
            env={**os.environ, "TSUZUKI_DATABASE_URL": self._url, "PYTHONPATH": str(REPOSITORY)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._all.append(process)
        return process

    def end_all(self) -> None:
        """Shut down cleanly, so that no recovery follows."""
        for process in self._all:
            process.send_signal(signal.SIGTERM)
        for process in self._all:
            process.wait(TIMEOUT_SECONDS)

    def kill_all(self) -> None:
        for process in self._all:
            process.send_signal(signal.SIGKILL)
            process.wait()


@contextmanager
def processes(url: str) -> Iterator[Processes]:
    with tempfile.TemporaryDirectory(prefix="tsuzuki-bench-") as folder:
        started = Processes(url, Path(folder))
        try:
            yield started
        finally:
            started.kill_all()


@contextmanager
def client(url: str) -> Iterator[Application]:
    """A client that submits runs and reads them, and does not work."""
    with (
        tempfile.TemporaryDirectory() as folder,
        opened(database_url=url, environ={}, cwd=Path(folder)) as application,
    ):
        yield application


def wait_until(is_so: Callable[[], bool], what: str) -> float:
    """When the condition became true, by `time.perf_counter`."""
    end = time.perf_counter() + TIMEOUT_SECONDS
    while time.perf_counter() < end:
        if is_so():
            return time.perf_counter()
        time.sleep(0.02)
    raise TimeoutError(f"waited in vain for {what}")
