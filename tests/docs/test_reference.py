"""The pages of the reference are what the code says now."""

from inspect import getmembers, isfunction
from pathlib import Path

import pytest

from support.databases import all_components, opened
from tools.reference.moves import MOVERS
from tools.reference.pages import PAGES
from tsuzuki.store.inspection import TRIGGERS
from tsuzuki.store.runs import moves
from tsuzuki.store.schema.migration_steps import drift
from tsuzuki.store.schema.sql_scripts import run_script

FOLDER = Path(__file__).parents[2] / "docs" / "reference"


@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_the_reference_is_what_the_code_says(name: str) -> None:
    written = (FOLDER / name).read_text(encoding="utf-8")
    assert written == PAGES[name](), f"{name} is old: run `make reference`"


def test_there_is_no_other_page_in_the_reference() -> None:
    assert {path.name for path in FOLDER.glob("*.[ms][dq]*")} == set(PAGES)


def test_the_page_of_moves_has_every_function_that_moves_a_run() -> None:
    movers = {
        name
        for name, function in getmembers(moves, isfunction)
        if function.__module__ == moves.__name__ and not name.startswith("_")
    }
    assert set(MOVERS) == movers


def test_the_published_schema_makes_the_tables_of_this_version(
    dialect: str, empty_database_url: str
) -> None:
    script = FOLDER / f"schema.{dialect}.sql"
    with opened(empty_database_url) as database, database.write() as connection:
        run_script(connection, script)
        assert [found for one in all_components() for found in drift(connection, one)] == []
        present = connection.execute(TRIGGERS[dialect]).scalars().all()
        assert set(present) == {name for one in all_components() for name in one.triggers(dialect)}
