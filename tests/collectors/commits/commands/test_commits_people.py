"""Reports of a team: people joined, merges and bots left out, paths left out, and all of it said."""

import csv
import io
import json
import sqlite3

import pytest

from support.workspace import Workspace


def stats(workspace: Workspace, *words: str) -> dict[str, tuple[int, int]]:
    """Commits and additions by the first field of a row."""
    rows = workspace.data("commits", "stats", *words)
    return {next(iter(row.values())): (row["commits"], row["additions"]) for row in rows}


def test_people_are_joined_by_mailmap_and_file(team: Workspace) -> None:
    assert stats(team, "--by", "author") == {
        "Ann Abe": (1, 2),
        "Bob": (1, 101),
        "Catherine": (1, 3),
        "Dan Dee": (1, 5),
    }


def test_a_person_in_two_teams_counts_in_both_and_once_in_the_total(team: Workspace) -> None:
    assert stats(team, "--by", "team") == {"(no team)": (1, 5), "Platform": (2, 5), "Web": (2, 103)}
    ended = team.ok("commits", "stats", "--by", "team")
    assert ended.out.splitlines()[-1].split() == ["TOTAL", "4", "111", "0"]
    assert "counts in each of them, and once in the total" in ended.err
    assert stats(team, "--by", "month", "--team", "Web") == {"2024-03": (2, 103)}


def test_what_is_left_out_is_said_and_shown_when_asked(team: Workspace) -> None:
    said = team.ok("commits", "stats").err
    assert "1 merge and 1 bot commit excluded; include them with --merges include --bots." in said
    shown = team.ok("commits", "stats", "--merges", "include", "--bots", "-o", "json")
    assert (sum(row["commits"] for row in json.loads(shown.out)), shown.err) == (6, "")
    assert stats(team, "--merges", "only", "--by", "author") == {"Ann Abe": (1, 3)}
    assert "excluded" not in team.ok("commits", "stats", "--author", "renovate[bot]").err


def test_a_program_is_told_with_the_total(team: Workspace) -> None:
    total = team.data("commits", "stats", "--total")
    assert total == {
        "commits": 4,
        "additions": 111,
        "deletions": 0,
        "left_out": {
            "merges": 1,
            "bots": 1,
            "parents_unknown": 0,
            "paths": 0,
            "paths_unknown": 0,
        },
    }


def test_without_a_team_it_is_said_where_teams_are_written(collected: Workspace) -> None:
    said = collected.ok("commits", "stats", "--by", "team").err
    assert "There are no teams yet" in said


def test_a_chart_leaves_out_the_same(team: Workspace) -> None:
    ended = team.ok("commits", "chart")
    assert "renovate" not in ended.out
    assert "1 bot commit excluded" in ended.err


def test_without_some_paths_the_rest_is_counted(team: Workspace) -> None:
    assert stats(team, "--by", "author", "--no-generated")["Bob"] == (1, 1)
    assert stats(team, "--bots", "--no-generated")["2024-03"] == (3, 6)
    found = team.ok("commits", "stats", "--exclude-path", "*.py", "--exclude-path", ".mailmap")
    assert "4 paths excluded." in found.err
    assert stats(team, "--exclude-path", "*.py", "--exclude-path", ".mailmap") == {
        "2024-03": (1, 100)
    }


def test_export_has_the_same_filters_and_says_more_of_a_commit(team: Workspace) -> None:
    text = team.ok("commits", "export", "--merges", "include", "--no-generated").out
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["person"] for row in rows if row["is_merge"] == "true"] == ["Ann Abe"]
    assert {row["person"]: row["teams"] for row in rows}["Ann Abe"] == "Platform;Web"
    assert {row["author_name"]: row["additions"] for row in rows}["Bob & Co"] == "1"
    assert sorted(len(row["parents"].split()) for row in rows) == [0, 1, 1, 1, 2]
    exported = json.loads(team.ok("commits", "export", "--format", "json", "--bots").out)
    assert len(exported) == 5
    assert {row["is_merge"] for row in exported} == {False}


def test_an_edited_file_of_people_changes_the_report_at_once(team: Workspace) -> None:
    file = team.folder / "people.yaml"
    before = file.read_text(encoding="utf-8")
    try:
        file.write_text("people:\n  One: [Cat, ann@example.org, bob@example.org]\n", "utf-8")
        assert stats(team, "--by", "author") == {"One": (3, 106), "Dan Dee": (1, 5)}
        file.write_text("people:\n  One: [a@x]\nteams:\n  T: [Onee]\n", "utf-8")
        ended = team.run("commits", "stats", "-o", "json")
        assert (ended.code, ended.error["code"]) == (3, "person_unknown")
        assert (ended.error["line"], ended.error["column"]) == (4, 7)
        assert 'Did you mean "One"?' in ended.error["hint"]
    finally:
        file.write_text(before, encoding="utf-8")


def test_a_report_that_adds_up_first_says_so(team: Workspace) -> None:
    expected = stats(team)
    with sqlite3.connect(team.folder / "tsuzuki.db") as database:
        database.execute("DELETE FROM tsuzuki_commit_days")
        database.execute("UPDATE tsuzuki_commit_rollups SET commits = 0")
    database.close()
    assert "Counting the commits of a project once" in team.ok("commits", "stats").err
    assert "Counting the commits" not in team.ok("commits", "stats").err
    assert stats(team) == expected


@pytest.mark.parametrize(
    ("words", "code", "said", "hint"),
    [
        (("--team", "Platfrom"), 4, "team_unknown", 'Did you mean "Platform"?'),
        (("--author", "Catherin"), 4, "author_unknown", 'Did you mean "Catherine"?'),
    ],
)
def test_a_team_or_author_that_is_not_there(
    team: Workspace, words: tuple[str, ...], code: int, said: str, hint: str
) -> None:
    ended = team.run("commits", "stats", *words, "-o", "json")
    assert (ended.code, ended.error["code"]) == (code, said)
    assert hint in ended.error["hint"]
