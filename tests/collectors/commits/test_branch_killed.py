"""A collection killed at any of its transactions goes on behind it, and nothing is lost or doubled."""

import os
import shutil
import signal
from pathlib import Path

import pytest

from support import git_oracle
from support.commit_collection import Collecting, Crash, crash_after
from support.databases import opened
from tsuzuki.collectors.commits import branch

PAGE_COMMITS = 4


def kill_after(url: str, workspace: Path, number: int) -> None:
    """Collect in a process of its own, which is killed once so many transactions are committed."""

    def kill(transaction: int) -> None:
        if transaction == number:
            os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if child == 0:
        try:
            with opened(url) as database:
                Collecting(database, workspace, page_commits=PAGE_COMMITS).collect(after=kill)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)
    assert os.WTERMSIG(status) == signal.SIGKILL


def test_killed_at_each_page_and_continued_the_rows_are_those_of_git(
    database_url: str, crooked_history: Path, tmp_path: Path
) -> None:
    with opened(database_url) as database:
        collecting = Collecting(database, tmp_path)
        project = collecting.repository(crooked_history, "main")
        database.close()
        kills = 0
        runs = "SELECT status, success_count, total_targets FROM bulk_collection_runs"
        # Each attempt gets one page further: its first transaction takes over, its second is a page.
        while collecting.ask(runs) != [("completed", 1, 1)]:
            kill_after(database_url, tmp_path, 2)
            database.close()
            kills += 1
            assert kills < 50
        expected = git_oracle.rows(crooked_history, "main")
        assert kills > len(expected) // PAGE_COMMITS
        assert sorted(collecting.rows(project)) == sorted(expected)
        (result,) = collecting.ask("SELECT new_commits_count FROM bulk_collection_results")
        assert result[0] == len(expected)
        collecting.check()


@pytest.mark.parametrize("number", range(1, 12))
def test_a_crash_after_any_transaction_costs_nothing_that_was_stored(
    collecting: Collecting, crooked_history: Path, number: int
) -> None:
    project = collecting.repository(crooked_history, "main")
    other = collecting.repository(crooked_history.parent, "main", path="no repository")
    try:
        collecting.collect(after=crash_after(number))
    except Crash:
        before = collecting.rows(project)
        collecting.collect()
        assert set(before) <= set(collecting.rows(project))
    assert sorted(collecting.rows(project)) == sorted(git_oracle.rows(crooked_history, "main"))
    assert collecting.rows(other) == []
    collecting.check()


def test_what_was_stored_is_not_asked_for_again(
    collecting: Collecting, crooked_history: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collecting.repository(crooked_history, "main")
    with pytest.raises(Crash):
        collecting.collect(after=crash_after(4))
    stored = {row.sha for row in collecting.rows(1)}
    assert len(stored) == 10
    asked: list[str] = []
    store = branch.store_page

    def listening(connection: object, target: object, page: object, *rest: object) -> int:
        asked.extend(commit.sha for commit in page)
        return store(connection, target, page, *rest)

    monkeypatch.setattr(branch, "store_page", listening)
    collecting.collect()
    assert stored.isdisjoint(asked)
    assert len(stored) + len(asked) == len(git_oracle.ids(crooked_history, "main"))


def test_a_mark_that_leads_nowhere_only_costs_time(
    collecting: Collecting, crooked_history: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "copy.git"
    shutil.copytree(crooked_history, folder)
    project = collecting.repository(folder, "main")
    with pytest.raises(Crash):
        collecting.collect(after=crash_after(4))
    with collecting.database.write() as connection:
        connection.exec_driver_sql(f"UPDATE tsuzuki_commit_targets SET range_mark = '9:{'0' * 40}'")
    collecting.collect()
    assert sorted(collecting.rows(project)) == sorted(git_oracle.rows(folder, "main"))
    collecting.check()
