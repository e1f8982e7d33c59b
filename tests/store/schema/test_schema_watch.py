"""A process learns in one query that another version has changed the tables it works with."""

from dataclasses import replace

import pytest
from sqlalchemy import text

from support.statement_recorder import recorded
from tsuzuki.model.errors import SchemaMismatch
from tsuzuki.store.schema.migrate import ENGINE, SchemaWatch
from tsuzuki.store.sql.database import Database

OTHER = replace(ENGINE, name="other")
NEWEST = ENGINE.newest()


@pytest.fixture
def two_components(database: Database) -> SchemaWatch:
    with database.write() as connection:
        connection.execute(text(f"CREATE TABLE {OTHER.version_table} (version_num TEXT)"))
        connection.execute(text(f"INSERT INTO {OTHER.version_table} VALUES ('{NEWEST}')"))
    return SchemaWatch(lambda: (ENGINE, OTHER))


def bring_other_to(database: Database, statement: str) -> None:
    with database.write() as connection:
        connection.execute(text(statement))


def test_all_components_are_one_query(database: Database, two_components: SchemaWatch) -> None:
    with recorded(database) as sent, database.read() as connection:
        assert two_components.check(connection) == {}
    assert len(sent) == 1


@pytest.mark.parametrize(
    "change",
    [
        f"UPDATE {OTHER.version_table} SET version_num = '9999'",
        f"DELETE FROM {OTHER.version_table}",
    ],
    ids=["another revision", "none"],
)
def test_a_component_that_another_version_has_changed_is_refused(
    database: Database, two_components: SchemaWatch, change: str
) -> None:
    bring_other_to(database, change)
    with database.read() as connection, pytest.raises(SchemaMismatch):
        two_components.check(connection)


def test_without_components_nothing_is_sent(database: Database) -> None:
    with recorded(database) as sent, database.read() as connection:
        assert SchemaWatch(tuple).check(connection) == {}
    assert list(sent) == []
