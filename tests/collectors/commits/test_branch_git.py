"""What is stored equals what git says, however the history was met: at once, or poll by poll."""

import shutil
from pathlib import Path

import pytest

from support import git_oracle
from support.commit_collection import Collecting, Crash, crash_after
from support.git_histories import AWKWARD_BRANCH, lines, straight
from tsuzuki.collectors.commits.queries import targets
from tsuzuki.collectors.commits.queries.targets import Target
from tsuzuki.collectors.commits.sandbox.gitlab.repository_builder import RepositoryBuilder
from tsuzuki.collectors.commits.tables import NoteKind, ResultStatus


def notes(collecting: Collecting, collection_id: str) -> list[NoteKind]:
    return [note.kind for note in collecting.only(collection_id).notes]


def point(folder: Path, branch: str, sha: str) -> None:
    git_oracle.git(folder, "update-ref", f"refs/heads/{branch}", sha)


@pytest.mark.parametrize("branch", ["main", AWKWARD_BRANCH])
def test_one_pass_stores_exactly_what_git_says(
    collecting: Collecting, crooked_history: Path, branch: str
) -> None:
    project = collecting.repository(crooked_history, branch)
    ended = collecting.collect()
    stored = collecting.rows(project, branch)
    expected = git_oracle.rows(crooked_history, f"refs/heads/{branch}")
    assert set(stored) == expected
    assert len(stored) == len(expected) == ended["new_commits"]
    collecting.check()


def test_polls_along_a_history_lose_nothing(
    collecting: Collecting, crooked_history: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "polled.git"
    shutil.copytree(crooked_history, folder)
    firsts = git_oracle.ids(folder, "--first-parent", "--reverse", "main")
    project = collecting.repository(folder, "main")
    for sha in firsts:
        point(folder, "main", sha)
        ended = collecting.collect()
        assert collecting.only(ended["collection_id"]).status is ResultStatus.SUCCESS
        assert set(collecting.rows(project)) == git_oracle.rows(folder, sha)
    assert len(firsts) > 10
    collecting.check()


def test_twenty_polls_of_a_longer_history_come_to_the_same_rows(
    collecting: Collecting, tmp_path: Path
) -> None:
    folder = tmp_path / "long.git"
    straight(folder, 120)
    history = git_oracle.ids(folder, "--reverse", "main")
    project = collecting.repository(folder, "main")
    counted = 0
    for poll in range(1, 21):
        point(folder, "main", history[len(history) * poll // 20 - 1])
        counted += collecting.collect()["new_commits"]
    assert counted == len(history)
    assert set(collecting.rows(project)) == git_oracle.rows(folder, "main")


def test_an_unchanged_branch_is_settled_without_reading_history(
    collecting: Collecting, crooked_history: Path
) -> None:
    collecting.repository(crooked_history, "main")
    collecting.collect()
    ended = collecting.collect()
    assert ended["new_commits"] == 0
    assert collecting.run_io.transactions == 3  # begin, settle, complete
    assert collecting.only(ended["collection_id"]).new_commits_count == 0


def test_a_commit_on_several_branches_counts_once(
    collecting: Collecting, crooked_history: Path
) -> None:
    branches = ["main", "arm/1", "arm/2", "old", AWKWARD_BRANCH]
    project = collecting.repository(crooked_history, *branches)
    collecting.collect()
    all_of_them = git_oracle.ids(crooked_history, *(f"refs/heads/{b}" for b in branches))
    (total,) = collecting.ask("SELECT sum(commits) FROM tsuzuki_commit_totals")
    assert total[0] == len(set(all_of_them))
    assert sum(len(collecting.rows(project, b)) for b in branches) > len(all_of_them)
    collecting.check()


# --- what happens to branches ---------------------------------------------------------------------


def test_a_force_push_keeps_the_old_rows_adds_the_new_and_is_noted(
    collecting: Collecting, tmp_path: Path
) -> None:
    folder = tmp_path / "forced.git"
    make = straight(folder, 12)
    project = collecting.repository(folder, "main")
    collecting.collect()
    before = set(collecting.rows(project))
    base = git_oracle.ids(folder, "main")[5]
    make.commit("main", {"other": lines(3)}, parents=[base], at=1_500_000_000)
    make.commit("main", {"other": lines(4)}, at=1_500_000_001)
    make.write()
    ended = collecting.collect()
    assert ended["new_commits"] == 2
    assert set(collecting.rows(project)) == before | git_oracle.rows(folder, "main")
    assert notes(collecting, ended["collection_id"]) == [NoteKind.FORCE_PUSH]
    collecting.check()


def test_a_history_that_was_replaced_is_collected_whole(
    collecting: Collecting, tmp_path: Path
) -> None:
    folder = tmp_path / "replaced.git"
    straight(folder, 6)
    project = collecting.repository(folder, "main")
    collecting.collect()
    before = set(collecting.rows(project))
    shutil.rmtree(folder)
    straight(folder, 9, seed=2)
    ended = collecting.collect()
    assert set(collecting.rows(project)) == before | git_oracle.rows(folder, "main")
    assert notes(collecting, ended["collection_id"]) == [NoteKind.HISTORY_REPLACED]


def test_commits_stored_without_a_head_are_completed_and_stored_once(
    collecting: Collecting, crooked_history: Path
) -> None:
    project = collecting.repository(crooked_history, "main")
    collecting.collect()
    with collecting.database.write() as connection:
        connection.exec_driver_sql("UPDATE tsuzuki_commit_targets SET head_sha = NULL")
        connection.exec_driver_sql("DELETE FROM tsuzuki_commit_totals")
        connection.exec_driver_sql("DELETE FROM commits WHERE additions > 5")
    ended = collecting.collect()
    assert sorted(collecting.rows(project)) == sorted(git_oracle.rows(crooked_history, "main"))
    assert notes(collecting, ended["collection_id"]) == [NoteKind.HEAD_UNKNOWN]


def test_a_deleted_branch_is_noted_and_its_rows_stay(
    collecting: Collecting, tmp_path: Path
) -> None:
    folder = tmp_path / "deleted.git"
    make = straight(folder, 4)
    make.point("side", git_oracle.ids(folder, "main")[2])
    make.write()
    project = collecting.repository(folder, "side")
    collecting.collect()
    before = collecting.rows(project, "side")
    make.delete("side")
    ended = collecting.collect()
    assert collecting.rows(project, "side") == before != []
    assert notes(collecting, ended["collection_id"]) == [NoteKind.BRANCH_GONE]


def test_an_empty_repository_is_noted_and_collected_once_it_has_commits(
    collecting: Collecting, tmp_path: Path
) -> None:
    folder = tmp_path / "empty.git"
    make = RepositoryBuilder(folder)
    make.write()
    project = collecting.repository(folder, "main")
    assert notes(collecting, collecting.collect()["collection_id"]) == [NoteKind.EMPTY_REPOSITORY]
    make.commit("main", {"a": lines(2)}, at=1_500_000_000)
    make.write()
    assert collecting.collect()["new_commits"] == 1
    assert set(collecting.rows(project)) == git_oracle.rows(folder, "main")


def test_a_branch_that_never_was_is_a_failure_that_names_the_default(
    collecting: Collecting, crooked_history: Path
) -> None:
    collecting.repository(crooked_history, "mian")
    result = collecting.only(collecting.collect()["collection_id"])
    assert result.status is ResultStatus.FAILED
    assert result.error_message == "no branch 'mian' (The project's default branch is 'main'.)"


def follow_default(collecting: Collecting, project: int, branch: str) -> None:
    with collecting.database.write() as connection:
        targets.follow(connection, Target(project, branch), is_default=True)


def followed(collecting: Collecting) -> set[tuple[str, bool]]:
    with collecting.database.read() as connection:
        return {(s.target.branch, s.is_default) for s in targets.find(connection)}


def test_a_moved_default_branch_of_a_folder_is_noted_and_followed(
    collecting: Collecting, tmp_path: Path
) -> None:
    folder = tmp_path / "default.git"
    make = straight(folder, 4)
    make.point("trunk", git_oracle.head(folder))
    make.write()
    follow_default(collecting, collecting.repository(folder), "main")
    collecting.collect()
    git_oracle.git(folder, "symbolic-ref", "HEAD", "refs/heads/trunk")
    assert notes(collecting, collecting.collect()["collection_id"]) == [NoteKind.DEFAULT_MOVED]
    assert followed(collecting) == {("main", False), ("trunk", True)}


def test_an_adopted_branch_that_vanishes_does_not_block_the_default(
    collecting: Collecting, tmp_path: Path
) -> None:
    folder = tmp_path / "vanished.git"
    straight(folder, 4)
    follow_default(collecting, collecting.repository(folder), "adopted")
    ended = collecting.collect()
    assert ended["failed"] == 0
    assert notes(collecting, ended["collection_id"]) == [
        NoteKind.BRANCH_GONE,
        NoteKind.DEFAULT_MOVED,
    ]
    assert followed(collecting) == {("main", True)}
    assert collecting.collect()["new_commits"] == 4


def test_a_range_whose_branch_moved_on_meanwhile_is_finished_first(
    collecting: Collecting, tmp_path: Path
) -> None:
    folder = tmp_path / "moving.git"
    make = straight(folder, 20)
    project = collecting.repository(folder, "main")
    with pytest.raises(Crash):
        collecting.collect(after=crash_after(4))
    stored = len(collecting.rows(project))
    assert 0 < stored < 20
    for number in range(3):
        make.commit("main", {"more": lines(number + 1)}, at=1_700_000_000 + number)
    make.write()
    ended = collecting.collect()
    assert sorted(collecting.rows(project)) == sorted(git_oracle.rows(folder, "main"))
    assert collecting.only(ended["collection_id"]).new_commits_count == 23
    collecting.check()
