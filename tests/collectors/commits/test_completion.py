"""Details of commits are those of git, and what was stored without them is completed by the next collection."""

import shutil
from pathlib import Path

import pytest

from support import git_oracle
from support.commit_collection import Collecting, Crash, crash_after
from support.git_histories import AWKWARD_BRANCH, lines, straight
from tsuzuki.collectors.commits import completion
from tsuzuki.collectors.commits.queries import completions, ledger
from tsuzuki.collectors.commits.sandbox.gitlab import TOKEN, gitlab
from tsuzuki.collectors.commits.sources import gitlab as source_gitlab
from tsuzuki.collectors.commits.sources.git import GitSource
from tsuzuki.collectors.commits.tables import ResultStatus
from tsuzuki.sandbox.server import StandIn
from tsuzuki.store.sql.database import Database


@pytest.fixture
def walks(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str | None, str]]:
    """Every range that is walked, by its two ends."""
    walked: list[tuple[str | None, str]] = []
    pages = GitSource.pages

    def listening(source, wanted, *, mark=None):  # type: ignore[no-untyped-def]  # as the one it stands for
        walked.append((wanted.old, wanted.new))
        return pages(source, wanted, mark=mark)

    monkeypatch.setattr(GitSource, "pages", listening)
    return walked


def check_against_git(collecting: Collecting, folder: Path, *branches: str) -> None:
    names = [f"refs/heads/{branch}" for branch in branches]
    assert collecting.parents() == git_oracle.parents(folder, *names)
    assert collecting.path_counts() == git_oracle.path_counts(folder, *names)
    collecting.check()


def test_parents_and_counts_per_path_are_those_of_git(
    collecting: Collecting, crooked_history: Path
) -> None:
    collecting.repository(crooked_history, "main", AWKWARD_BRANCH)
    collecting.collect()
    check_against_git(collecting, crooked_history, "main", AWKWARD_BRANCH)
    counts = collecting.ask("SELECT parent_count FROM tsuzuki_commit_parents")
    assert {row[0] for row in counts} >= {0, 1, 3, 4}


def test_what_was_stored_without_details_is_completed_once(
    collecting: Collecting, crooked_history: Path, walks: list[tuple[str | None, str]]
) -> None:
    project = collecting.repository(crooked_history, "main")
    collecting.collect()
    before = collecting.rows(project)
    collecting.forget_details()
    ended = collecting.collect()
    assert ended["new_commits"] == 0
    assert sorted(collecting.rows(project)) == sorted(before)
    check_against_git(collecting, crooked_history, "main")
    assert any("parents and paths" in line for line in collecting.run_io.lines)
    walks.clear()
    collecting.collect()
    assert walks == []
    assert collecting.run_io.transactions == 3  # start, settle, complete


@pytest.mark.parametrize("number", range(1, 10))
def test_a_crash_while_completing_costs_at_most_a_page(
    collecting: Collecting, crooked_history: Path, number: int
) -> None:
    collecting.repository(crooked_history, "main")
    collecting.collect()
    collecting.forget_details()
    try:
        collecting.collect(after=crash_after(number))
    except Crash:
        before = collecting.path_counts()
        collecting.collect()
        assert before <= collecting.path_counts()
    check_against_git(collecting, crooked_history, "main")


def test_pages_that_were_completed_before_a_crash_are_not_read_again(
    collecting: Collecting, crooked_history: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collecting.repository(crooked_history, "main")
    collecting.collect()
    collecting.forget_details()
    with pytest.raises(Crash):
        collecting.collect(after=crash_after(4))
    complete = {sha for sha, _parents in collecting.parents()}
    assert len(complete) == 10
    with collecting.database.read() as connection:
        (told,) = completions.in_work(connection, str(ledger.running(connection)))
    assert (told.complete_commits, told.commits) == (10, len(collecting.rows(1)))
    read: list[str] = []
    pages = GitSource.pages

    def listening(source, wanted, *, mark=None):  # type: ignore[no-untyped-def]  # as the one it stands for
        for page in pages(source, wanted, mark=mark):
            read.extend(commit.sha for commit in page.commits)
            yield page

    monkeypatch.setattr(GitSource, "pages", listening)
    ended = collecting.collect()
    with collecting.database.read() as connection:
        assert completions.in_work(connection, ended["collection_id"]) == []
    assert complete.isdisjoint(read)
    check_against_git(collecting, crooked_history, "main")


def test_new_commits_and_missing_details_come_in_one_collection(
    collecting: Collecting, tmp_path: Path
) -> None:
    folder = tmp_path / "grows.git"
    make = straight(folder, 12)
    collecting.repository(folder, "main")
    collecting.collect()
    collecting.forget_details()
    make.commit("main", {"new": lines(3)}, at=1_700_000_000)
    make.write()
    assert collecting.collect()["new_commits"] == 1
    check_against_git(collecting, folder, "main")


def test_a_complete_branch_stays_so_with_each_page_and_is_not_looked_through(
    collecting: Collecting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def looked_through(*_arguments: object) -> bool:
        raise AssertionError("the commits of the branch were looked through")

    monkeypatch.setattr(completion, "has_incomplete", looked_through)
    folder = tmp_path / "grows.git"
    make = straight(folder, 12)
    collecting.repository(folder, "main")
    collecting.collect()
    make.commit("main", {"new": lines(3)}, at=1_700_000_000)
    make.write()
    ended = collecting.collect()
    assert collecting.only(ended["collection_id"]).status is ResultStatus.SUCCESS
    assert collecting.run_io.transactions == 4  # start, range, page, complete
    check_against_git(collecting, folder, "main")


def test_what_a_process_of_the_version_before_stores_is_completed(
    collecting: Collecting, tmp_path: Path, walks: list[tuple[str | None, str]]
) -> None:
    folder = tmp_path / "mixed.git"
    make = straight(folder, 12)
    collecting.repository(folder, "main")
    collecting.collect()
    old = git_oracle.head(folder)
    kept = collecting.ask("SELECT * FROM tsuzuki_commit_completions")
    make.commit("main", {"new": lines(3)}, at=1_700_000_000)
    make.write()
    new = git_oracle.head(folder)
    collecting.collect()
    with collecting.database.write() as connection:  # what the other process would not have written
        connection.exec_driver_sql(
            f"DELETE FROM tsuzuki_commit_path_counts WHERE commit_sha = '{new}'"
        )
        connection.exec_driver_sql(f"DELETE FROM tsuzuki_commit_parents WHERE commit_sha = '{new}'")
        connection.exec_driver_sql(
            f"UPDATE tsuzuki_commit_completions SET head_sha = '{kept[0].head_sha}'"
        )
    walks.clear()
    collecting.collect()
    assert walks == [(old, new)]
    check_against_git(collecting, folder, "main")


def test_a_range_that_a_process_of_the_version_before_started_is_completed(
    collecting: Collecting, crooked_history: Path
) -> None:
    collecting.repository(crooked_history, "main")
    with pytest.raises(Crash):
        collecting.collect(after=crash_after(4))
    collecting.forget_details()
    collecting.collect()
    check_against_git(collecting, crooked_history, "main")


def test_what_another_branch_has_brought_is_not_read_again(
    collecting: Collecting, tmp_path: Path, walks: list[tuple[str | None, str]]
) -> None:
    folder = tmp_path / "two.git"
    make = straight(folder, 12)
    base = git_oracle.ids(folder, "main")[4]
    make.point("contained", base)
    make.commit("side", {"side": lines(3)}, parents=[base], at=1_700_000_000)
    make.write()
    collecting.section = collecting.section.model_copy(update={"concurrency_per_host": 1})
    collecting.repository(folder, "contained", "main", "side")
    collecting.collect()
    contained, main, side = (
        git_oracle.head(folder, name) for name in ("contained", "main", "side")
    )
    walks.clear()
    collecting.forget_details()
    collecting.collect()
    assert walks == [(None, contained), (contained, main), (contained, side)]
    check_against_git(collecting, folder, "main", "side")


def test_commits_that_a_force_push_left_behind_are_not_asked_for_again(
    collecting: Collecting, tmp_path: Path, walks: list[tuple[str | None, str]]
) -> None:
    folder = tmp_path / "forced.git"
    make = straight(folder, 12)
    project = collecting.repository(folder, "main")
    collecting.collect()
    base = git_oracle.ids(folder, "main")[5]
    make.commit("main", {"other": lines(3)}, parents=[base], at=1_700_000_000)
    make.write()
    collecting.collect()
    stored = collecting.rows(project)
    collecting.forget_details()
    collecting.collect()
    walks.clear()
    ended = collecting.collect()
    assert collecting.only(ended["collection_id"]).status is ResultStatus.SUCCESS
    assert walks == []
    assert sorted(collecting.rows(project)) == sorted(stored)
    assert collecting.parents() == git_oracle.parents(folder, "main")


def test_a_gitlab_tells_parents_and_what_was_stored_without_is_completed(
    live_database: Database,
    crooked_history: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shutil.copytree(crooked_history, tmp_path / "served" / "group" / "one.git")
    api = gitlab(tmp_path / "served")
    project = api.projects.find("group/one")
    assert project is not None
    monkeypatch.setattr(source_gitlab, "PAGE_SIZE", 6)
    with StandIn(api) as server:
        collecting = Collecting(live_database, tmp_path, gitlab={"url": server.url, "token": TOKEN})
        collecting.remote(project.number, "group/one", "main")
        collecting.collect()
        assert collecting.parents() == git_oracle.parents(crooked_history, "main")
        assert collecting.path_counts() == set()
        collecting.check()
        collecting.forget_details()
        with pytest.raises(Crash):
            collecting.collect(after=crash_after(4))
        server.forget_requests()
        collecting.collect()
        assert collecting.parents() == git_oracle.parents(crooked_history, "main")
        pages = -(-len(git_oracle.ids(crooked_history, "main")) // 6)
        assert server.count() == 1 + pages - 2  # the head, and the pages that were left
        server.forget_requests()
        collecting.collect()
        assert server.count() == 1
