"""Which commits a branch lacks, told from the parents that its commits name."""

from pathlib import Path

from support import git_oracle
from support.commit_collection import Collecting
from support.git_histories import AWKWARD_BRANCH, lines, straight
from tsuzuki.collectors.commits.queries import closure
from tsuzuki.collectors.commits.queries.targets import Target

ABSENT = "0123456789" * 4


def missing(collecting: Collecting, project: int, head: str, branch: str = "main") -> set[str]:
    with collecting.database.read() as connection:
        return closure.missing_from(connection, Target(project, branch), head)


def forget(collecting: Collecting, *shas: str) -> None:
    with collecting.database.write() as connection:
        for sha in shas:
            connection.exec_driver_sql(f"DELETE FROM commits WHERE sha = '{sha}'")


def test_a_whole_history_lacks_nothing(collecting: Collecting, crooked_history: Path) -> None:
    project = collecting.repository(crooked_history, "main", AWKWARD_BRANCH)
    collecting.collect()
    for branch in ("main", AWKWARD_BRANCH):
        head = git_oracle.head(crooked_history, branch)
        assert missing(collecting, project, head, branch) == set()


def test_of_a_gap_the_commits_that_stored_ones_name_are_known(
    collecting: Collecting, crooked_history: Path
) -> None:
    project = collecting.repository(crooked_history, "main")
    collecting.collect()
    parents = dict(git_oracle.parents(crooked_history, "main"))
    (octopus,) = (sha for sha, ids in parents.items() if len(ids.split()) == 4)
    gone = set(parents[octopus].split())
    forget(collecting, *gone)
    assert missing(collecting, project, git_oracle.head(crooked_history)) == gone


def test_a_head_that_is_not_stored_is_missing(collecting: Collecting, tmp_path: Path) -> None:
    folder = straight(tmp_path / "one.git", 4).folder
    project = collecting.repository(folder, "main")
    collecting.collect()
    assert missing(collecting, project, ABSENT) == {ABSENT}


def test_what_a_force_push_left_behind_is_not_missed(
    collecting: Collecting, tmp_path: Path
) -> None:
    make = straight(tmp_path / "forced.git", 8)
    project = collecting.repository(make.folder, "main")
    collecting.collect()
    behind, base = (git_oracle.ids(make.folder, "main")[place] for place in (1, 3))
    make.commit("main", {"other": lines(3)}, parents=[base], at=1_700_000_000)
    make.write()
    collecting.collect()
    forget(collecting, behind)
    assert missing(collecting, project, git_oracle.head(make.folder)) == set()
