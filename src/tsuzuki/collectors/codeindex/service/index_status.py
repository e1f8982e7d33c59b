"""How an index is: what its builds say, and which files it has."""

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tsuzuki.collectors.codeindex.builds.job import BuildJob, BuildStatus
from tsuzuki.collectors.codeindex.parsing.parsed_file import FileOutcome
from tsuzuki.collectors.codeindex.queries import files
from tsuzuki.collectors.codeindex.queries.files import FileCounts
from tsuzuki.collectors.codeindex.queries.meta import IndexStats

PROBLEMS_SHOWN_MAX = 20


@dataclass(frozen=True, kw_only=True)
class IndexStatus:
    """How the index of a tree is. `job` is the build that runs, or that ended in the last five minutes."""

    root: str
    index_file: str
    job: BuildJob | None
    stats: IndexStats | None
    outcomes: Mapping[str, int] = field(default_factory=dict)
    languages: Mapping[str, int] = field(default_factory=dict)
    extractors: Mapping[str, int] = field(default_factory=dict)
    problems: tuple[Mapping[str, str], ...] = ()
    is_listed: bool = True
    """Whether git listed every file of the index. Otherwise there may be files that git ignores."""

    def for_callers_from_outside(self) -> "IndexStatus":
        """The status without names of files that git may ignore."""
        return self if self.is_listed else replace(self, problems=())

    @property
    def state(self) -> str:
        """`missing`, `building`, `ready`, or `incomplete` if no build completed so far."""
        if self.job is not None and self.job.status is BuildStatus.RUNNING:
            return "building"
        if self.stats is not None:
            return "ready"
        return "incomplete" if self.outcomes or self.job else "missing"

    def as_json(self) -> dict[str, Any]:
        return {
            "root": self.root,
            "state": self.state,
            "index_file": self.index_file,
            "job": self.job.as_json() if self.job else None,
            "stats": self.stats.as_json() if self.stats else None,
            "outcomes": dict(self.outcomes),
            "languages": dict(self.languages),
            "extractors": dict(self.extractors),
            "problems": list(self.problems),
            "is_listed": self.is_listed,
        }


@dataclass(frozen=True, kw_only=True)
class IndexEntry:
    """One index file. `state` is `ready`, `building`, `incomplete`, `corrupt`, `newer` or `root gone`."""

    root: str
    state: str
    files: int
    symbols: int
    last_indexed_at: str | None
    bytes: int
    index_file: str


def problems_of(
    connection: sqlite3.Connection, counts: FileCounts
) -> tuple[Mapping[str, str], ...]:
    """The first of them; most trees have none, which needs no look at the files."""
    if not any(FileOutcome(outcome).keeps_old_symbols for outcome in counts.outcomes):
        return ()
    return tuple(files.problems(connection, limit=PROBLEMS_SHOWN_MAX))
