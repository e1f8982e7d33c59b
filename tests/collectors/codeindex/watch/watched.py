"""A watcher whose events a test can wait for, and the symbols that its index has."""

import queue
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from tsuzuki.collectors.codeindex.builds.job import BuildJob
from tsuzuki.collectors.codeindex.index_file import index_path
from tsuzuki.collectors.codeindex.service.builds import Builds
from tsuzuki.collectors.codeindex.service.watcher import Watcher, WatchEvent, WatchState

SECONDS_MAX = 120


class Watched:
    """A watcher in this process. Leaving it closes the watcher."""

    def __init__(self, root: Path, builds: Builds) -> None:
        self.root = root
        self.builds = builds
        self.events: list[WatchEvent] = []
        self._queue: queue.Queue[WatchEvent] = queue.Queue()
        self.watcher = Watcher(root, builds=builds, on_event=self._queue.put)

    def __enter__(self) -> "Watched":
        if self.watcher.state is WatchState.CLOSED:
            self.watcher.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        assert self.watcher.close()

    def wait_for(self, is_it: Callable[[WatchEvent], bool]) -> WatchEvent:
        """The next event of which it is true."""
        while True:
            event = self._queue.get(timeout=SECONDS_MAX)
            self.events.append(event)
            if is_it(event):
                return event

    def state(self, state: WatchState) -> WatchEvent:
        return self.wait_for(lambda event: event.state is state)

    def resting(self) -> "Watched":
        """Started, and its first build has ended."""
        self.watcher.start()
        self.state(WatchState.WATCHING)
        return self

    def built(self) -> BuildJob:
        """The next build that ends."""
        event = self.wait_for(lambda event: bool(event.job and event.job.status != "running"))
        assert event.job is not None
        return event.job

    def built_until(self, is_so: Callable[[set[tuple[str, str]]], bool]) -> None:
        """Wait for builds until the symbols are so."""
        while not is_so(self.symbols()):
            assert self.built().status == "completed"

    def symbols(self) -> set[tuple[str, str]]:
        """Path and name of each."""
        with closing(sqlite3.connect(index_path(self.root, self.builds.folder))) as connection:
            return set(
                connection.execute(
                    "SELECT path, name FROM symbols JOIN files ON files.id = file_id"
                )
            )

    def paths(self) -> set[str]:
        """The files that the index has."""
        with closing(sqlite3.connect(index_path(self.root, self.builds.folder))) as connection:
            return {path for (path,) in connection.execute("SELECT path FROM files")}


def write(root: Path, path: str, name: str) -> None:
    """A Python file with one function."""
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(f"def {name}():\n    pass\n", encoding="utf-8")
