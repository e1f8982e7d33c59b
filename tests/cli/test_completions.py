"""A shell is offered the names of this workspace; what cannot be looked up is not offered, in silence."""

import pytest

from support.databases import opened
from support.factories import WORKER, add_worker
from support.workspace import Workspace
from tsuzuki.cli import run_cli

FEEDS = """
  news:
    type: feeds
    feeds: {nasa: {url: "https://example.org/feed.xml"}}
"""


def offered(workspace: Workspace, line: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What follows the last, incomplete, word of the line."""
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
    workspace.capsys.readouterr()
    environ = {"_TSUZUKI_COMPLETE": "bash_complete"}
    assert run_cli([], environ=environ, cwd=workspace.folder) == 0
    told = workspace.capsys.readouterr()
    assert told.err == ""
    return [row.partition(",")[2] for row in told.out.splitlines() if row]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("tsuzuki job show he", ["hello"]),
        ("tsuzuki job enable hello ne", ["news"]),
        ("tsuzuki run ls --job h", ["hello"]),
        ("tsuzuki feeds fetch ", ["news"]),
        ("tsuzuki feeds show n", ["nasa"]),
        ("tsuzuki settings get max_orph", ["max_orphans"]),
        ("tsuzuki job add x --timezone Europe/Berl", ["Europe/Berlin"]),
        ("tsuzuki run show 1", ["1"]),
        ("tsuzuki worker drain ", []),
        ("tsuzuki commits collect ", []),
        ("tsuzuki de", ["demo"]),
        ("tsuzuki do", ["doctor"]),
        ("tsuzuki demo --li", ["--listen"]),
        ("tsuzuki config s", ["show", "schema"]),
        ("tsuzuki job add x --type c", ["codeindex", "commits"]),
    ],
)
def test_names_and_ids_are_offered(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, line: str, expected: list[str]
) -> None:
    workspace.append(FEEDS)
    workspace.ok("job", "run", "hello")
    assert offered(workspace, line, monkeypatch) == expected


@pytest.mark.parametrize(
    "line", ["tsuzuki job show ", "tsuzuki run show ", "tsuzuki worker drain "]
)
def test_where_nothing_can_be_looked_up_nothing_is_offered_and_nothing_made(
    empty: Workspace, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    assert offered(empty, line, monkeypatch) == []
    empty.file.write_text("jobs: [")
    assert offered(empty, line, monkeypatch) == []
    assert list(empty.content()) == ["tsuzuki.yaml"]


def test_workers_are_offered(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(f"sqlite:///{workspace.database}") as database:
        add_worker(database)
    for line in ("tsuzuki worker drain host", "tsuzuki run ls --worker ho"):
        assert offered(workspace, line, monkeypatch) == [WORKER]


def test_followed_projects_are_offered(
    collected: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project,) = {target["project"] for target in collected.data("commits", "targets")}
    assert offered(collected, "tsuzuki commits collect ", monkeypatch) == [project]
