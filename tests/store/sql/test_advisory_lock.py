"""Advisory locks: one transaction at a time for a key, until it ends."""

import pytest

from support.dialects import only_on_postgresql
from support.threads import in_background
from support.waiting import wait_until_blocked
from tsuzuki.store.sql.advisory_lock import lock_until_commit
from tsuzuki.store.sql.database import Database


def lock(database: Database, key: int | str) -> bool:
    with database.write() as connection:
        lock_until_commit(connection, key)
    return True


@only_on_postgresql
@pytest.mark.parametrize("key", [7, "a name"])
def test_a_second_transaction_waits_until_the_first_has_ended(
    database: Database, key: int | str
) -> None:
    with database.write() as connection:
        lock_until_commit(connection, key)
        other = in_background(lambda: lock(database, key))
        wait_until_blocked(database)
        assert not other.done()
    assert other.result(30)


@only_on_postgresql
def test_another_key_is_another_lock(database: Database) -> None:
    with database.write() as connection:
        lock_until_commit(connection, 7)
        lock_until_commit(connection, "a name")
        assert in_background(lambda: lock(database, 8)).result(30)
        assert in_background(lambda: lock(database, "another name")).result(30)
