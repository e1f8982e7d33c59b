"""A workspace with quick settings, and the processes a test starts in it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.daemons import Daemons, be_quick, started_on
from support.databases import PostgresServer
from tsuzuki.services.runs import Runs
from tsuzuki.store.sql.database import Database


@pytest.fixture
def quick_database(live_database: Database) -> Database:
    be_quick(live_database)
    return live_database


@pytest.fixture
def daemons(database_url: str, quick_database: Database, tmp_path: Path) -> Iterator[Daemons]:
    with started_on(database_url, tmp_path) as daemons:
        yield daemons


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    """A PostgreSQL that no other test uses, for what would disturb them."""
    server = PostgresServer()
    yield server
    server.stop()


@pytest.fixture
def runs(quick_database: Database) -> Runs:
    return Runs(database=quick_database, actor="test")
