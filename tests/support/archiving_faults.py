"""Fault injection: every point at which archiving a log can be interrupted."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from datetime import datetime

import pytest

from support.log_archiving import ArchivingFixture
from tsuzuki.engine.archive.log_archive import LogArchive
from tsuzuki.store.logs import LogLine
from tsuzuki.store.sql.database import Connection, Database


class Crash(Exception):
    """Stands for the end of the process."""


class Interposed:
    """An archive that calls hooks before, during and after a write."""

    def __init__(
        self,
        archive: LogArchive,
        *,
        before: Callable[[], object] = lambda: None,
        after_first_line: Callable[[], object] = lambda: None,
        after: Callable[[], object] = lambda: None,
    ) -> None:
        self._archive = archive
        self._before = before
        self._after_first_line = after_first_line
        self._after = after

    def write(self, run_id: int, finished_at: datetime, lines: Iterable[LogLine]) -> str:
        self._before()
        ref = self._archive.write(run_id, finished_at, self._interrupted(lines))
        self._after()
        return ref

    def _interrupted(self, lines: Iterable[LogLine]) -> Iterator[LogLine]:
        for number, each in enumerate(lines):
            if number == 1:
                self._after_first_line()
            yield each

    def read(self, ref: str, *, after_seq: int = 0) -> Iterator[LogLine]:
        return self._archive.read(ref, after_seq=after_seq)

    def delete(self, ref: str) -> None:
        self._archive.delete(ref)


def crash() -> None:
    raise Crash


class Writes:
    """Calls a hook before the n-th transaction of a database, counted from now."""

    def __init__(self, database: Database, patch: pytest.MonkeyPatch) -> None:
        self._write = database.write
        self._count = 0
        self._acts: dict[int, Callable[[], object]] = {}
        patch.setattr(database, "write", self._counted)

    def before(self, number: int, act: Callable[[], object]) -> None:
        self._acts[number] = act

    def _counted(self) -> AbstractContextManager[Connection]:
        self._count += 1
        act = self._acts.pop(self._count, None)
        if act is not None:
            act()
        return self._write()


TRANSACTIONS = {
    "before the run names it": 1,
    "before the first rows go": 2,
    "before the second rows go": 3,
    "before the last rows go": 4,
}
POINTS = [
    "before the file is written",
    "while the file is written",
    "after the file is written",
    *TRANSACTIONS,
]


def arrange(
    point: str,
    fixture: ArchivingFixture,
    patch: pytest.MonkeyPatch,
    act: Callable[[], object] = crash,
) -> LogArchive:
    """Call `act` at a point of archiving. Answers the archive to use."""
    assert fixture.archive is not None
    match point:
        case "before the file is written":
            return Interposed(fixture.archive, before=act)
        case "while the file is written":
            return Interposed(fixture.archive, after_first_line=act)
        case "after the file is written":
            return Interposed(fixture.archive, after=act)
    Writes(fixture.database, patch).before(TRANSACTIONS[point], act)
    return fixture.archive
