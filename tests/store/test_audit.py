"""The audit log: entries in order, found by actor and by object."""

from typing import Any

import pytest

from support.moving_clock import MovingClock
from tsuzuki.store import audit
from tsuzuki.store.audit import AuditEntry
from tsuzuki.store.sql.database import Database


def record(database: Database, **said: Any) -> None:
    with database.write() as connection:
        audit.record(
            connection,
            **{
                "actor": "ada",
                "action": "job.change",
                "object_type": "job",
                "object_id": "1",
                **said,
            },
        )


def find(database: Database, **wanted: Any) -> list[AuditEntry]:
    with database.read() as connection:
        return audit.find(connection, **wanted)


def test_an_entry_comes_back_as_it_was_recorded(database: Database, clock: MovingClock) -> None:
    record(database, before={"priority": 1, "tags": []}, after={"priority": 2, "tags": ["x"]})
    (entry,) = find(database)
    assert entry == AuditEntry(
        id=entry.id,
        at=clock.now(),
        actor="ada",
        action="job.change",
        object_type="job",
        object_id="1",
        before={"priority": 1, "tags": []},
        after={"priority": 2, "tags": ["x"]},
    )


def test_before_and_after_may_be_any_value(database: Database) -> None:
    for value in (None, 0, 1.5, False, "", "x", [], {}):
        record(database, before=value, after=value)
        (entry,) = find(database, limit=1)
        assert (entry.before, entry.after) == (value, value)


def test_a_rolled_back_change_has_no_entry(database: Database) -> None:
    def stumble() -> None:
        with database.write() as connection:
            audit.record(connection, actor="a", action="b", object_type="c", object_id="d")
            raise KeyError

    with pytest.raises(KeyError):
        stumble()
    assert find(database) == []


def test_entries_are_found_by_whom_and_about_what_newest_first(database: Database) -> None:
    for number in range(4):
        record(database, object_id=str(number), actor="ada" if number % 2 else "bob")
    record(database, object_type="worker")
    assert [entry.object_id for entry in find(database, object_type="job")] == ["3", "2", "1", "0"]
    assert [entry.object_id for entry in find(database, actor="bob")] == ["2", "0"]
    assert len(find(database, object_id="1")) == 2
    assert len(find(database, object_id="1", object_type="job")) == 1
    assert find(database, actor="unknown") == []


def test_entries_are_read_by_pages(database: Database) -> None:
    for number in range(5):
        record(database, object_id=str(number))
    first = find(database, limit=2)
    rest = find(database, before_id=first[-1].id)
    assert [entry.object_id for entry in first + rest] == ["4", "3", "2", "1", "0"]
