"""A git URL as a source: asked for heads only, with a mirror for the rest."""

from pathlib import Path

import pytest

from support import git_oracle
from support.commit_collection import Collecting
from support.git_histories import lines, straight
from tsuzuki.collectors.commits.git.program import Git, GitOutput
from tsuzuki.collectors.commits.queries import projects
from tsuzuki.collectors.commits.sandbox.gitlab.repository_builder import RepositoryBuilder
from tsuzuki.collectors.commits.sources.factory import SourceFactory, described, host_of, is_url
from tsuzuki.collectors.commits.tables import NoteKind, ResultStatus
from tsuzuki.model.clock import SystemClock
from tsuzuki.model.errors import UsageError


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The commands git is asked, by their first word."""
    words: list[str] = []
    ask = Git.ask

    def listening(git: Git, folder: Path | None, *arguments: str) -> GitOutput:
        words.append(arguments[0])
        return ask(git, folder, *arguments)

    monkeypatch.setattr(Git, "ask", listening)
    return words


def test_a_url_is_mirrored_and_collected_like_a_folder(
    collecting: Collecting, crooked_history: Path
) -> None:
    project = collecting.repository(f"file://{crooked_history}", "main", "arm/1")
    assert collecting.collect()["failed"] == 0
    for branch in ("main", "arm/1"):
        expected = git_oracle.rows(crooked_history, f"refs/heads/{branch}")
        assert set(collecting.rows(project, branch)) == expected
    collecting.check()


def test_an_unchanged_url_costs_one_question(
    collecting: Collecting, crooked_history: Path, asked: list[str]
) -> None:
    collecting.repository(f"file://{crooked_history}", "main")
    collecting.collect()
    assert asked.count("fetch") == 1
    asked.clear()
    collecting.collect()
    assert asked == ["ls-remote"]


def test_a_force_push_is_seen_through_the_mirror(collecting: Collecting, tmp_path: Path) -> None:
    folder = tmp_path / "remote.git"
    make = straight(folder, 6)
    project = collecting.repository(f"file://{folder}", "main")
    collecting.collect()
    before = set(collecting.rows(project))
    base = git_oracle.ids(folder, "main")[3]
    make.commit("main", {"other": lines(3)}, parents=[base], at=1_500_000_000)
    make.write()
    git_oracle.git(folder, "gc", "--prune=now", "--quiet")
    result = collecting.only(collecting.collect()["collection_id"])
    assert [note.kind for note in result.notes] == [NoteKind.FORCE_PUSH]
    assert set(collecting.rows(project)) == before | git_oracle.rows(folder, "main")


def test_a_moved_default_branch_is_noted_and_followed(
    collecting: Collecting, tmp_path: Path
) -> None:
    folder = tmp_path / "remote.git"
    make = straight(folder, 4)
    project = collecting.repository(f"file://{folder}", "main")
    with collecting.database.write() as connection:
        connection.exec_driver_sql("UPDATE tsuzuki_commit_targets SET is_default = true")
    collecting.collect()
    make.commit("trunk", {"t": lines(2)}, parents=[git_oracle.head(folder)], at=1_700_000_000)
    make.write()
    git_oracle.git(folder, "symbolic-ref", "HEAD", "refs/heads/trunk")
    result = collecting.only(collecting.collect()["collection_id"])
    assert [note.kind for note in result.notes] == [NoteKind.DEFAULT_MOVED]
    collecting.collect()
    assert set(collecting.rows(project, "trunk")) == git_oracle.rows(folder, "trunk")
    assert collecting.ask("SELECT branch_name FROM tsuzuki_commit_targets WHERE is_default") == [
        ("trunk",)
    ]


def test_an_empty_url_is_noted(collecting: Collecting, tmp_path: Path) -> None:
    RepositoryBuilder(tmp_path / "empty.git").write()
    collecting.repository(f"file://{tmp_path}/empty.git", "main")
    result = collecting.only(collecting.collect()["collection_id"])
    assert [note.kind for note in result.notes] == [NoteKind.EMPTY_REPOSITORY]


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("file:///nowhere/at/all.git", "there is no repository at this URL"),
        ("ext::sh -c true", "protocol is not allowed"),
        ("http://127.0.0.1:1/x.git", "git could not reach the repository"),
    ],
)
def test_a_url_that_gives_nothing_fails_its_target(
    collecting: Collecting, url: str, words: str
) -> None:
    collecting.section = collecting.section.model_copy(update={"tries": 1})
    collecting.repository(url, "main")
    result = collecting.only(collecting.collect()["collection_id"])
    assert result.status is ResultStatus.FAILED
    assert words in str(result.error_message)


@pytest.mark.parametrize("url", ["https://me:secret@example.org/x.git", "https://tok@h/x.git"])
def test_a_url_with_a_secret_is_never_stored(collecting: Collecting, url: str) -> None:
    sources = SourceFactory(
        section=collecting.section, workspace=collecting.workspace, clock=SystemClock()
    )
    with pytest.raises(UsageError, match="would be stored"):
        described(url, base=Path(), sources=sources)


def test_a_location_is_a_path_or_somewhere_else() -> None:
    assert is_url("https://example.org/x.git")
    assert is_url("git@example.org:x.git")
    assert not is_url("/a/b:c")
    assert not is_url("./x")


def test_a_pause_is_shared_by_what_is_on_one_host(collecting: Collecting) -> None:
    collecting.repository("https://example.org/a.git")
    collecting.repository("git@example.org:b.git")
    collecting.repository("/c")
    with collecting.database.read() as connection:
        hosts = {p.location: host_of(p) for p in projects.find(connection)}
    assert hosts == {
        "https://example.org/a.git": "example.org",
        "git@example.org:b.git": "git@example.org",
        "/c": "this machine",
    }
