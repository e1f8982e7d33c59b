"""Statistics count each commit once, by whatever they are asked; pages are looked up, never scanned for."""

from pathlib import Path

import pytest

from support.commit_collection import Collecting
from support.query_plans import last_sent, ways_to
from tsuzuki.collectors.commits.queries import statistics
from tsuzuki.collectors.commits.queries.pages import store_page
from tsuzuki.collectors.commits.queries.statistics import Dimension
from tsuzuki.collectors.commits.queries.targets import Target
from tsuzuki.collectors.commits.source import Commit


def a_commit(number: int, *, month: int = 1, author: str = "ann") -> Commit:
    return Commit(
        f"{number:040x}", author.title(), f"{author}@x", f"2024-{month:02}-01T00:00:00Z", number, 1
    )


@pytest.fixture
def filled(collecting: Collecting, tmp_path: Path) -> Collecting:
    """Two projects; the branches of the first share two of their commits."""
    one = collecting.repository(tmp_path / "one", "main", "side", path="one")
    two = collecting.repository(tmp_path / "two", "main", path="two")
    shared = [a_commit(1), a_commit(2, month=2, author="bob")]
    pages = {
        Target(one, "main"): [*shared, a_commit(3, month=2)],
        Target(one, "side"): [*shared, a_commit(4, author="bob")],
        Target(two, "main"): [a_commit(1)],
    }
    with collecting.database.write() as connection:
        for target, page in pages.items():
            assert store_page(connection, target, page) == len(page)
            assert store_page(connection, target, page) == 0
    collecting.check()
    return collecting


def counted(collecting: Collecting, *by: Dimension, **wanted: object) -> list[tuple[object, ...]]:
    with collecting.database.read() as connection:
        rows = statistics.totals(connection, by, **wanted)  # type: ignore[arg-type]
    return [tuple(row.values()) for row in rows]


def test_by_month_author_and_project(filled: Collecting) -> None:
    assert counted(filled, Dimension.MONTH) == [("2024-01", 3, 6, 3), ("2024-02", 2, 5, 2)]
    assert counted(filled, Dimension.AUTHOR) == [
        ("Ann", "ann@x", 3, 5, 3),
        ("Bob", "bob@x", 2, 6, 2),
    ]
    assert counted(filled, Dimension.PROJECT) == [("one", 1, 4, 10, 4), ("two", 2, 1, 1, 1)]
    assert counted(filled, Dimension.PROJECT, Dimension.MONTH)[0] == ("one", 1, "2024-01", 2, 5, 2)


def test_some_projects_and_months_only(filled: Collecting) -> None:
    assert counted(filled, Dimension.MONTH, project_ids=[2]) == [("2024-01", 1, 1, 1)]
    assert counted(filled, Dimension.MONTH, since_month="2024-02") == [("2024-02", 2, 5, 2)]
    assert counted(filled, Dimension.MONTH, until_month="2024-01") == [("2024-01", 3, 6, 3)]
    assert counted(filled, Dimension.MONTH, project_ids=[]) == []


def test_what_a_page_has_already_is_looked_up_not_walked_for(filled: Collecting) -> None:
    with filled.database.write() as connection:
        target = Target(1, "main")
        for start in range(0, 3000, 500):
            with last_sent(connection) as sent:
                store_page(connection, target, [a_commit(start + n) for n in range(500)])
        asked = next(one for one in sent if "SELECT commits.branch_name" in one.statement)
        is_sqlite = connection.dialect.name == "sqlite"
        (way,) = ways_to(connection, "commits", asked)
    if is_sqlite:
        assert "(project_id=? AND branch_name=? AND sha=?)" in way
    else:
        assert way.startswith("Index Scan")
