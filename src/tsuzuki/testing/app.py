"""An app on a temporary database: what it submits can be looked at, and run here and now."""

import shutil
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from tsuzuki.library.job import Job
from tsuzuki.library.program import Tsuzuki
from tsuzuki.model.clock import SystemClock
from tsuzuki.model.states import RunState, Trigger

RUNS_MAX = 10_000


class ShiftedClock(SystemClock):
    """The machine's clock, ahead by as much as a test has let pass."""

    def __init__(self) -> None:
        self._ahead_seconds = 0.0

    def advance(self, seconds: float) -> None:
        """Let time pass at once."""
        self._ahead_seconds += seconds

    def now(self) -> datetime:
        return super().now() + timedelta(seconds=self._ahead_seconds)

    def monotonic(self) -> float:
        return super().monotonic() + self._ahead_seconds


class TestedApp:
    """An app whose database is temporary. Use the app and its jobs as always."""

    __test__ = False

    def __init__(self, app: Tsuzuki, clock: ShiftedClock) -> None:
        self.app = app
        self._clock = clock

    def advance(self, seconds: float) -> None:
        """Let time pass at once: what is delayed until then, and what is scheduled, is due."""
        self._clock.advance(seconds)

    def drain(self) -> Counter[RunState]:
        """Run everything that is due, with what it submits, in threads of this process; return how many runs ended
        how. A retry is due after its backoff: `advance` first."""
        return self.app.run_until_idle(stop=threading.Event())

    def submitted(self, job: Job[..., Any] | str) -> list[dict[str, Any]]:
        """The arguments of each submitted run of a job, in order, as its function gets them."""
        name = job if isinstance(job, str) else job.name
        load: Callable[[Any], dict[str, Any]] = dict
        if isinstance(job, Job):
            load = job.__tsuzuki_conversion__.load_arguments
        runs = self.app.runs(job=name, limit=RUNS_MAX)
        return [load(run.arguments) for run in reversed(runs) if run.trigger is Trigger.MANUAL]


@contextmanager
def on_temporary_database(app: Tsuzuki) -> Iterator[TestedApp]:
    """Let an app use an empty SQLite database while the block runs, whatever it was made for. Its own is not
    touched."""
    clock = ShiftedClock()
    with tempfile.TemporaryDirectory(prefix="tsuzuki-test-") as folder:
        shutil.copyfile(_template(), Path(folder) / "test.db")
        url = f"sqlite:///{folder}/test.db?synchronous=off"
        with app.on_database(url, cwd=Path(folder), clock=clock):
            yield TestedApp(app, clock)


@cache
def _template() -> Path:
    """A database with all tables and no rows: to copy it is faster than to create one."""
    folder = tempfile.TemporaryDirectory(prefix="tsuzuki-test-")
    _KEPT.append(folder)
    path = Path(folder.name) / "template.db"
    with Tsuzuki(f"sqlite:///{path}?synchronous=off", environ={}, cwd=path.parent) as app:
        app.submit_many([])
    return path


_KEPT: list[tempfile.TemporaryDirectory[str]] = []
"""Deleted at the end of the process."""
