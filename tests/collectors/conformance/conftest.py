"""One case for each collector and each kind of source. A new collector is one line here."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from support.databases import SqliteFolder, opened
from tsuzuki.store.schema.migrate import Component
from tsuzuki.store.sql.database import Database
from tsuzuki.wiring.collectors import collector_records

from .books_case import BooksCase
from .case import Case
from .commits_case import GitCase, GitLabCase
from .feeds_case import FeedsCase, ItemsCase
from .harness import Harness, Rows

CASES: dict[str, type[Case]] = {
    "books": BooksCase,
    "commits from git": GitCase,
    "commits from GitLab": GitLabCase,
    "feeds": FeedsCase,
    "items of feeds": ItemsCase,
}
RECORDS = collector_records().usable
WITH_TABLES = {name for name, one in RECORDS.items() if one.component is not None}
assert {case.collector.name for case in CASES.values()} == WITH_TABLES


@pytest.fixture(params=CASES)
def case(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Case]:
    made = CASES[request.param](tmp_path, monkeypatch)
    yield made
    made.close()


@pytest.fixture
def components(case: Case) -> Sequence[Component]:
    return case.components


@pytest.fixture
def harness(case: Case, live_database: Database) -> Harness:
    return Harness(case, live_database)


@pytest.fixture
def undisturbed(case: Case, sqlite_folder: SqliteFolder) -> Rows:
    """The rows of one run that nothing disturbed."""
    with opened(sqlite_folder.create(case.components)) as database:
        harness = Harness(case, database)
        harness.start().collect()
        return harness.rows()
