"""The counts that reports read hold every commit, or are known not to."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from support.commit_collection import Collecting, Crash
from tsuzuki.collectors.commits.queries import rollup
from tsuzuki.collectors.commits.queries.details import PathIds
from tsuzuki.collectors.commits.queries.pages import complete_page, lock_project, store_page
from tsuzuki.collectors.commits.queries.targets import Target
from tsuzuki.collectors.commits.sources.source import Commit

COUNTS = {
    "tsuzuki_commit_months": "SELECT branch_name, author_name, merge_state, month, m.commits, additions,"
    " deletions FROM tsuzuki_commit_months m JOIN tsuzuki_commit_authors USING (author_id)"
    " LEFT JOIN tsuzuki_commit_rollups USING (rollup_id) ORDER BY 1, 2, 3, 4",
    "tsuzuki_commit_days": "SELECT author_name, merge_state, day, commits, additions, deletions"
    " FROM tsuzuki_commit_days JOIN tsuzuki_commit_authors USING (author_id) ORDER BY 1, 2, 3",
    "tsuzuki_commit_rollups": "SELECT branch_name, commits FROM tsuzuki_commit_rollups ORDER BY 1",
}


def a_page(*numbers: int) -> list[Commit]:
    return [
        Commit(
            f"{n:040x}",
            f"Author {n % 3}",
            f"a{n % 3}@x",
            f"2024-{1 + n % 4:02}-{1 + n % 28:02}T00:00:00Z" if n % 7 else "",
            n,
            1,
            parents="1 2" if n % 5 == 0 else "1",
        )
        for n in numbers
    ]


@pytest.fixture
def targets(collecting: Collecting, tmp_path: Path) -> tuple[Target, Target]:
    project = collecting.repository(tmp_path / "one", "main", "side", path="one")
    return Target(project, "main"), Target(project, "side")


def counts(collecting: Collecting) -> dict[str, list[Any]]:
    return {table: collecting.ask(statement) for table, statement in COUNTS.items()}


def stale(collecting: Collecting) -> list[int]:
    with collecting.database.read() as connection:
        return rollup.stale_projects(connection)


def rebuild(collecting: Collecting, project_id: int) -> None:
    with collecting.database.write() as connection:
        lock_project(connection, project_id)
        rollup.rebuild(connection, project_id)


def run(collecting: Collecting, statement: str) -> None:
    with collecting.database.write() as connection:
        connection.execute(text(statement))


@pytest.fixture
def stored(collecting: Collecting, targets: tuple[Target, Target]) -> Collecting:
    main, side = targets
    for target, numbers in ((main, range(1, 20)), (main, range(15, 30)), (side, range(10, 40))):
        with collecting.database.write() as connection:
            store_page(connection, target, a_page(*numbers))
    return collecting


@pytest.mark.parametrize("rows_max", [3, 20_000])
def test_what_pages_add_is_what_a_rebuild_finds(
    stored: Collecting, monkeypatch: pytest.MonkeyPatch, rows_max: int
) -> None:
    monkeypatch.setattr(rollup, "ROWS_MAX", rows_max)
    assert stale(stored) == []
    by_pages = counts(stored)
    assert sum(row.commits for row in by_pages["tsuzuki_commit_days"]) == 39
    rebuild(stored, 1)
    assert counts(stored) == by_pages
    assert stale(stored) == []


def test_rows_that_an_older_process_stored_are_noticed(
    stored: Collecting, targets: tuple[Target, Target]
) -> None:
    expected = counts(stored)
    run(stored, "DELETE FROM tsuzuki_commit_days")
    run(stored, "DELETE FROM tsuzuki_commit_months")
    run(stored, "DELETE FROM tsuzuki_commit_rollups WHERE branch_name = 'side'")
    assert stale(stored) == [1]
    with stored.database.write() as connection:  # a page of this process in between
        store_page(connection, targets[1], a_page(50))
    assert stale(stored) == [1]
    run(stored, f"DELETE FROM commits WHERE sha = '{50:040x}'")
    rebuild(stored, 1)
    assert counts(stored) == expected


def test_a_page_that_is_not_committed_leaves_nothing(
    stored: Collecting, targets: tuple[Target, Target]
) -> None:
    before = counts(stored)
    with suppress(Crash), stored.database.write() as connection:
        store_page(connection, targets[0], a_page(60, 61))
        raise Crash
    assert (counts(stored), stale(stored)) == (before, [])


def test_parents_that_become_known_are_counted_anew(
    stored: Collecting, targets: tuple[Target, Target]
) -> None:
    expected = counts(stored)
    run(stored, "DELETE FROM tsuzuki_commit_parents")
    rebuild(stored, 1)
    assert {row.merge_state for row in counts(stored)["tsuzuki_commit_days"]} == {2}
    with stored.database.write() as connection:
        complete_page(connection, targets[0], a_page(*range(1, 40)), PathIds())
    assert stale(stored) == [1]
    rebuild(stored, 1)
    assert (counts(stored), stale(stored)) == (expected, [])


def test_a_recount_that_a_page_overtook_is_not_stored(
    stored: Collecting, targets: tuple[Target, Target]
) -> None:
    with stored.database.write() as connection:
        author_ids = rollup.intern_all(connection, 1)
    with stored.database.read() as connection:
        found = rollup.recount(connection, 1, author_ids)
    assert found is not None
    with stored.database.write() as connection:
        store_page(connection, targets[0], a_page(70))
    before = counts(stored)
    with stored.database.write() as connection:
        lock_project(connection, 1)
        assert not rollup.replace(connection, 1, found)
    assert counts(stored) == before
    with stored.database.read() as connection:
        assert rollup.recount(connection, 1, {}) is None


def test_a_recount_that_parents_overtook_is_not_stored(
    stored: Collecting, targets: tuple[Target, Target]
) -> None:
    run(stored, "DELETE FROM tsuzuki_commit_parents")
    with stored.database.write() as connection:
        author_ids = rollup.intern_all(connection, 1)
    with stored.database.read() as connection:
        found = rollup.recount(connection, 1, author_ids)
    assert found is not None
    with stored.database.write() as connection:
        complete_page(connection, targets[0], a_page(*range(1, 40)), PathIds())
        assert not rollup.replace(connection, 1, found)
    assert stale(stored) == [1]
