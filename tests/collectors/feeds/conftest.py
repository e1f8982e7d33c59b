"""A database with the tables of feeds."""

import pytest

from tsuzuki.collectors.feeds.tables import COMPONENT
from tsuzuki.store.schema.migrate import ENGINE, upgrade
from tsuzuki.store.sql.database import Database


@pytest.fixture
def feeds_database(database: Database) -> Database:
    upgrade(database, [ENGINE, COMPONENT])
    return database
