"""A workspace with quick settings, and the processes a test starts in it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.daemons import Daemons, be_quick
from tsuzuki.services.runs import Runs
from tsuzuki.store.database import Database


@pytest.fixture
def quick_database(live_database: Database) -> Database:
    be_quick(live_database)
    return live_database


@pytest.fixture
def daemons(database_url: str, quick_database: Database, tmp_path: Path) -> Iterator[Daemons]:
    every = Daemons(database_url, tmp_path)
    yield every
    every.kill_all()


@pytest.fixture
def runs(quick_database: Database) -> Runs:
    return Runs(database=quick_database, actor="test")
