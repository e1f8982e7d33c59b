"""`tsuzuki commits stats` and `export`: by what, of which commits, in which order, and mistakes told."""

import csv
import io
import json

import pytest

from support.workspace import Workspace


def stats(workspace: Workspace, *words: str) -> list[tuple[object, ...]]:
    """Each row without its changed lines."""
    rows = workspace.data("commits", "stats", *words)
    return [tuple(row.values())[:-2] for row in rows]


def test_by_day_week_month_quarter_and_branch(collected: Workspace) -> None:
    assert stats(collected, "--by", "day")[:2] == [("2024-01-30", 1), ("2024-01-31", 1)]
    assert stats(collected, "--by", "week") == [
        ("2024-W05", 3),
        ("2024-W09", 1),
        ("2024-W14", 2),
        ("2024-W18", 1),
    ]
    assert stats(collected)[0] == ("2024-01", 2)
    assert stats(collected, "--by", "quarter") == [("2024-Q1", 4), ("2024-Q2", 3)]
    assert stats(collected, "--by", "branch") == [("main", 5), ("side", 7)]


def test_an_author_is_shown_once_by_the_name_used_most(collected: Workspace) -> None:
    assert stats(collected, "--by", "author") == [
        ("Ann Abe", "ann@example.org", 4),
        ("Bob & Co", "bob@example.org", 3),
    ]


def test_days_are_included_and_a_month_stands_for_all_its_days(collected: Workspace) -> None:
    days = ("--since", "2024-01-31", "--until", "2024-02-01")
    assert stats(collected, *days) == [("2024-01", 1), ("2024-02", 1)]
    assert stats(collected, "--since", "2024-02", "--until", "2024-02") == [("2024-02", 2)]
    assert stats(collected, "--until", "2024-01-29") == []


def test_only_of_an_author_a_project_or_a_branch(collected: Workspace) -> None:
    assert stats(collected, "--by", "branch", "--author", "BOB@example.org") == [
        ("main", 1),
        ("side", 3),
    ]
    assert stats(collected, "--by", "quarter", "--author", "ann abe") == [
        ("2024-Q1", 3),
        ("2024-Q2", 1),
    ]
    assert stats(collected, "--branch", "main", "--by", "quarter")[-1] == ("2024-Q2", 1)
    both = ("--branch", "main", "--branch", "side", "--project", "1")
    assert stats(collected, "--by", "quarter", *both) == stats(collected, "--by", "quarter")


def test_sorted_and_only_the_top(collected: Workspace) -> None:
    assert stats(collected, "--sort", "month:desc")[0] == ("2024-05", 1)
    assert stats(collected, "--sort", "commits", "--top", "2") == [("2024-01", 2), ("2024-02", 2)]
    assert stats(collected, "--by", "author", "--sort", "author:desc", "--top", "1") == [
        ("Bob & Co", "bob@example.org", 3)
    ]
    assert stats(collected, "--sort", "commits:asc")[0] == ("2024-05", 1)


def test_a_table_ends_with_the_total_of_every_commit_once(collected: Workspace) -> None:
    ended = collected.ok("commits", "stats", "--by", "branch", "--top", "1")
    assert ended.out.splitlines()[-1].split() == ["TOTAL", "7", "17", "0"]
    assert "1 of 2 rows" in ended.err
    assert "counts on each of them, and once in the total" in ended.err


def test_json_has_the_total_only_when_asked(collected: Workspace) -> None:
    total = {"commits": 7, "additions": 17, "deletions": 0}
    found = collected.data("commits", "stats", "--by", "branch", "--total")
    assert {key: found[key] for key in total} == total
    assert all("branch" in row for row in collected.data("commits", "stats", "--by", "branch"))


def test_export_takes_the_same_filters(collected: Workspace) -> None:
    wanted = ("--since", "2024-02-01", "--until", "2024-04-02", "--author", "bob@example.org")
    exported = collected.ok("commits", "export", "--format", "json", *wanted).out
    assert [row["branch_name"] for row in json.loads(exported)] == ["side"]
    text = collected.ok("commits", "export", "--project", "1", "--branch", "main").out
    assert len(list(csv.DictReader(io.StringIO(text)))) == 5


@pytest.mark.parametrize("command", ["stats", "export"])
@pytest.mark.parametrize(
    ("words", "code", "said", "hint"),
    [
        (("--since", "2024-02-30"), 2, "not_a_day", "YYYY-MM-DD"),
        (("--until", "yesterday"), 2, "not_a_day", "YYYY-MM-DD"),
        (("--since", "2024-1-1"), 2, "not_a_day", "--since 2024-02-29"),
        (("--since", "0000-01"), 2, "not_a_day", "YYYY-MM-DD"),
        (("--since", "2024-03-02", "--until", "2024-03-01"), 2, "days_reversed", "--since"),
        (("--author", "Ann Abi"), 4, "author_unknown", 'Did you mean "Ann Abe"?'),
        (("--project", "nowhere"), 4, "project_unknown", "projects"),
    ],
)
def test_a_filter_that_cannot_be_is_refused_before_a_line_is_printed(
    collected: Workspace, command: str, words: tuple[str, ...], code: int, said: str, hint: str
) -> None:
    ended = collected.run("commits", command, *words, "-o", "json")
    assert (ended.code, ended.error["code"], ended.out) == (code, said, "")
    assert hint in ended.error["hint"]


@pytest.mark.parametrize(
    ("words", "said", "hint"),
    [
        (("--sort", "comits"), "sort_unknown", 'Did you mean "commits"?'),
        (("--sort", "author"), "sort_unknown", "--sort commits:desc"),
        (("--sort", "commits:down"), "sort_unknown", "--sort commits:desc"),
        (("--sort", "commits:"), "sort_unknown", "--sort commits:desc"),
        (("--by", "quater"), "usage", 'Did you mean "quarter"?'),
        (("--top", "0"), "usage", ""),
    ],
)
def test_an_order_that_cannot_be_is_refused(
    collected: Workspace, words: tuple[str, ...], said: str, hint: str
) -> None:
    ended = collected.run("commits", "stats", *words, "-o", "json")
    assert (ended.code, ended.error["code"]) == (2, said)
    assert hint in ended.error["hint"]
