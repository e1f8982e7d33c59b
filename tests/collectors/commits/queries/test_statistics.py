"""Statistics count each commit once, by whatever they are asked; pages are looked up, never scanned for."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from support.commit_collection import Collecting
from support.query_plans import last_sent, ways_to
from tsuzuki.collectors.commits.grouping import Dimension
from tsuzuki.collectors.commits.people.identity import People
from tsuzuki.collectors.commits.queries import rollup
from tsuzuki.collectors.commits.queries.commit_filter import CommitFilter
from tsuzuki.collectors.commits.queries.pages import store_page
from tsuzuki.collectors.commits.queries.statistics import Merges
from tsuzuki.collectors.commits.queries.targets import Target
from tsuzuki.collectors.commits.service.report import CommitRules, Reporter
from tsuzuki.collectors.commits.sources.source import Commit


def a_commit(
    number: int, *, month: int = 1, day: int = 1, author: str = "ann", email: str = ""
) -> Commit:
    moment = f"2024-{month:02}-{day:02}T00:00:00Z"
    return Commit(f"{number:040x}", author.title(), email or f"{author}@x", moment, number, 1)


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


def counted(
    collecting: Collecting,
    *by: Dimension,
    author: str | None = None,
    merges: Merges = Merges.INCLUDE,
    **wanted: Any,
) -> list[tuple[object, ...]]:
    """The rows of a report; `author` is an address."""
    with collecting.database.read() as connection:
        assert rollup.stale_projects(connection) == []
        rules = CommitRules(
            merges=merges,
            is_asked=None if author is None else lambda _author, person: person.key == author,
        )
        found = Reporter(connection, People()).report(by, CommitFilter(**wanted), rules)
    return [tuple(row.values()) for row in found.rows]


def store(collecting: Collecting, target: Target, *page: Commit) -> None:
    with collecting.database.write() as connection:
        assert store_page(connection, target, page) == len(page)


def test_by_month_author_and_project(filled: Collecting) -> None:
    assert counted(filled, Dimension.MONTH) == [("2024-01", 3, 6, 3), ("2024-02", 2, 5, 2)]
    assert counted(filled, Dimension.AUTHOR) == [
        ("Ann", "ann@x", 3, 5, 3),
        ("Bob", "bob@x", 2, 6, 2),
    ]
    assert counted(filled, Dimension.PROJECT) == [("one", 1, 4, 10, 4), ("two", 2, 1, 1, 1)]
    assert counted(filled, Dimension.PROJECT, Dimension.MONTH)[0] == ("one", 1, "2024-01", 2, 5, 2)


def test_by_day_week_and_quarter(filled: Collecting) -> None:
    days = [("2024-01-01", 3, 6, 3), ("2024-02-01", 2, 5, 2)]
    assert counted(filled, Dimension.DAY) == days
    assert counted(filled, Dimension.WEEK) == [("2024-W01", 3, 6, 3), ("2024-W05", 2, 5, 2)]
    assert counted(filled, Dimension.QUARTER) == [("2024-Q1", 5, 11, 5)]
    assert counted(filled) == [(5, 11, 5)]
    assert counted(filled, project_ids=[]) == [(0, 0, 0)]


def test_a_week_belongs_to_its_year_of_iso(filled: Collecting) -> None:
    store(filled, Target(2, "main"), a_commit(9, month=12, day=30))
    assert counted(filled, Dimension.WEEK)[-1] == ("2025-W01", 1, 9, 1)


def test_by_branch_a_commit_counts_for_each(filled: Collecting) -> None:
    assert counted(filled, Dimension.BRANCH) == [("main", 4, 7, 4), ("side", 3, 7, 3)]
    assert counted(filled, Dimension.PROJECT, Dimension.BRANCH)[:2] == [
        ("one", 1, "main", 3, 6, 3),
        ("one", 1, "side", 3, 7, 3),
    ]


def test_of_some_branches_a_commit_counts_once(filled: Collecting) -> None:
    assert counted(filled, Dimension.MONTH, branches=["side"]) == [
        ("2024-01", 2, 5, 2),
        ("2024-02", 1, 2, 1),
    ]
    assert counted(filled, branches=["main", "side"]) == counted(filled)
    assert counted(filled, branches=["nowhere"]) == [(0, 0, 0)]


def test_some_projects_and_authors_only(filled: Collecting) -> None:
    assert counted(filled, Dimension.MONTH, project_ids=[2]) == [("2024-01", 1, 1, 1)]
    assert counted(filled, Dimension.MONTH, project_ids=[]) == []
    assert counted(filled, Dimension.PROJECT, author="bob@x") == [("one", 1, 2, 6, 2)]
    assert counted(filled, Dimension.DAY, author="bob@x")[0] == ("2024-01-01", 1, 4, 1)


def test_both_days_are_included(filled: Collecting) -> None:
    target = Target(2, "main")
    store(filled, target, *(a_commit(number, month=3, day=number) for number in (10, 11, 12)))
    first, last = date(2024, 3, 10), date(2024, 3, 11)
    assert counted(filled, Dimension.MONTH, since=first, until=last) == [("2024-03", 2, 21, 2)]
    assert counted(filled, Dimension.MONTH, since=first, until=first) == [("2024-03", 1, 10, 1)]
    assert counted(filled, Dimension.MONTH, until=date(2024, 1, 31)) == [("2024-01", 3, 6, 3)]
    assert counted(filled, since=date(2024, 2, 1), until=date.max) == [(5, 38, 5)]


BY = [
    (),
    (Dimension.DAY,),
    (Dimension.WEEK, Dimension.PROJECT),
    (Dimension.MONTH,),
    (Dimension.QUARTER, Dimension.AUTHOR),
    (Dimension.AUTHOR,),
    (Dimension.TEAM,),
    (Dimension.BRANCH,),
    (Dimension.MONTH, Dimension.BRANCH, Dimension.AUTHOR),
]
DAYS = [
    (None, None),
    (date(2024, 1, 1), None),
    (date(2024, 1, 2), None),
    (None, date(2024, 2, 1)),
    (date(2023, 12, 15), date(2024, 3, 2)),
    (date(2024, 2, 1), date(2024, 2, 29)),
    (date(2024, 1, 20), date(2024, 1, 25)),
    (date(2024, 1, 20), date(2024, 2, 3)),
    (date.min, date.max),
]


@pytest.mark.parametrize("by", BY, ids="_".join)
def test_the_rollup_and_the_commits_answer_alike(
    filled: Collecting, by: tuple[Dimension, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = [a_commit(40 + n, month=1 + n % 3, day=1 + n * 2, author="bob") for n in range(12)]
    store(filled, Target(2, "main"), *(one._replace(parents="1 2") for one in wide))
    branches = [None, ["main"], ["main", "side"]]
    asked = [
        {"since": since, "until": until, "branches": some, "merges": merges}
        for since, until in DAYS
        for some in branches
        for merges in Merges
    ]
    quick = [counted(filled, *by, **one) for one in asked]
    monkeypatch.setattr(Reporter, "_scope", lambda *_: None)
    assert [counted(filled, *by, **one) for one in asked] == quick


def test_merges_are_counted_left_out_or_counted_alone(filled: Collecting) -> None:
    store(filled, Target(2, "main"), a_commit(9, month=5)._replace(parents="1 2"))
    by_month = {one: counted(filled, Dimension.MONTH, merges=one)[-1] for one in Merges}
    assert by_month == {
        Merges.INCLUDE: ("2024-05", 1, 9, 1),
        Merges.EXCLUDE: ("2024-02", 2, 5, 2),
        Merges.ONLY: ("2024-05", 1, 9, 1),
    }
    assert counted(filled, merges=Merges.EXCLUDE) == [(5, 11, 5)]


def test_without_some_paths_the_rest_is_counted(filled: Collecting) -> None:
    changed = [("a.py", 5, 1), ("uv.lock", 40, 9)]
    page = [
        a_commit(45, month=6)._replace(deletions=10, paths=changed),
        a_commit(46, month=6)._replace(additions=7, deletions=0, paths=[("uv.lock", 7, 0)]),
        a_commit(47, month=6)._replace(additions=0, deletions=0, paths=[]),
        a_commit(48, month=6),
    ]
    target = Target(2, "main")
    store(filled, target, *page)
    (path,) = filled.ask("SELECT path_id FROM tsuzuki_commit_paths WHERE path = 'uv.lock'")
    june = {"since": date(2024, 6, 1), "excluded_path_ids": [path.path_id]}
    assert counted(filled, Dimension.MONTH, **june) == [("2024-06", 3, 53, 2)]
    assert counted(filled, Dimension.BRANCH, **june) == [("main", 3, 53, 2)]
    with filled.database.read() as connection:
        report = Reporter(connection, People()).report((), CommitFilter(**june), CommitRules())
    assert (report.left_out.paths, report.left_out.paths_unknown) == (1, 1)


def test_an_author_is_known_by_the_address_without_case(filled: Collecting) -> None:
    mixed = [a_commit(20 + n, author="robert", email="Bob@X") for n in range(3)]
    store(filled, Target(2, "main"), *mixed)
    assert counted(filled, Dimension.AUTHOR) == [
        ("Ann", "ann@x", 3, 5, 3),
        ("Robert", "bob@x", 5, 69, 5),
    ]
    names = [row[1] for row in counted(filled, Dimension.MONTH, Dimension.AUTHOR) if "bob@x" in row]
    assert names == ["Robert", "Robert"]


@pytest.mark.parametrize("by", [(Dimension.AUTHOR,), (Dimension.AUTHOR, Dimension.DAY)])
def test_of_two_names_used_as_often_the_newest_is_shown(
    filled: Collecting, by: tuple[Dimension, ...]
) -> None:
    used = [("zed", 5), ("new", 9), ("old", 2)]
    page = [a_commit(30 + day, month=4, day=day, author=name, email="q@y") for name, day in used]
    store(filled, Target(2, "main"), *page)
    shown = {row[0] for row in counted(filled, *by) if row[1] == "q@y"}
    assert shown == {"New"}


def test_a_date_that_cannot_be_read_is_counted_all_the_same(filled: Collecting) -> None:
    store(filled, Target(2, "main"), Commit("f" * 40, "Ann", "ann@x", "", 1, 1))
    for by in (Dimension.DAY, Dimension.WEEK, Dimension.MONTH, Dimension.QUARTER):
        assert counted(filled, by)[0] == ("", 1, 1, 1)


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
