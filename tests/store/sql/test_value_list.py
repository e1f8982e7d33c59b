"""A list of values as one parameter: any length, numbers and texts, on both databases."""

from collections.abc import Collection

import pytest
from sqlalchemy import Text, bindparam, select

from support.factories import add_job, spec
from tsuzuki.store.schema.tables import job_definitions
from tsuzuki.store.sql.database import Database
from tsuzuki.store.sql.prepared import execute
from tsuzuki.store.sql.value_list import in_list

BY_ID = select(job_definitions.c.name).where(in_list(job_definitions.c.id, "ids"))
NOT_BY_ID = select(job_definitions.c.name).where(~in_list(job_definitions.c.id, "ids"))
IS_LISTED = select(in_list(bindparam("value", type_=Text()), "texts"))


@pytest.mark.parametrize("listed", [(), "a", "ac", "abc"])
def test_rows_are_found_by_a_list_of_any_length_and_by_its_opposite(
    database: Database, listed: Collection[str]
) -> None:
    ids = {name: add_job(database, spec(name)) for name in "abc"}
    wanted = {
        "ids": [*(ids[name] for name in listed), *range(10_000, 10_000 + 40_000 * len(listed))]
    }
    with database.read() as connection:
        assert set(execute(connection, BY_ID, wanted).scalars()) == set(listed)
        assert set(execute(connection, NOT_BY_ID, wanted).scalars()) == set("abc") - set(listed)


@pytest.mark.parametrize("value", ["", "plain", "{a,b}", 'say "hi"', "back\\slash", "NULL", "続き"])
def test_a_text_is_found_whatever_signs_it_has(database: Database, value: str) -> None:
    with database.read() as connection:

        def is_listed(texts: Collection[str]) -> bool:
            values = {"value": value, "texts": texts}
            return bool(execute(connection, IS_LISTED, values).scalar_one())

        assert is_listed([value])
        assert is_listed(["another", value])
        assert not is_listed(["another"])
        assert not is_listed([])
