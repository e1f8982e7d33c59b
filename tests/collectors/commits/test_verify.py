"""Verification of commits: whole after a collection, and every planted gap is named, whatever the source."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from support import git_oracle
from support.commit_collection import Collecting
from support.git_histories import lines
from support.verifying import faults, verified
from tsuzuki.collectors.commits.sandbox.gitlab import TOKEN, gitlab
from tsuzuki.collectors.commits.sandbox.gitlab.api import GitLabApi
from tsuzuki.collectors.commits.sandbox.gitlab.repository_builder import RepositoryBuilder
from tsuzuki.collectors.commits.sources import git as source_git
from tsuzuki.collectors.commits.sources import gitlab as source_gitlab
from tsuzuki.collectors.commits.verify import verify
from tsuzuki.engine.run_context import RunStopped
from tsuzuki.model.verification import NAMED_MAX, Verified
from tsuzuki.sandbox.faults import StandInFault, StandInFaultKind
from tsuzuki.sandbox.server import StandIn
from tsuzuki.store.sql.database import Database

LENGTH = 45
COMMITS = "/api/v4/*/repository/commits"


@pytest.fixture
def make(tmp_path: Path) -> RepositoryBuilder:
    made = RepositoryBuilder(tmp_path / "served" / "group" / "one.git")
    tip = made.commit("main", {"a": lines(1)}, at=1_500_000_000)
    for number in range(1, LENGTH):
        parents = [tip]
        if number % 5 == 0:
            at = 1_500_000_000 + number * 100 - 50
            parents.append(made.commit("side", {"b": lines(number)}, parents=[tip], at=at))
        tip = made.commit(
            "main",
            {"a": lines(number + 1)},
            parents=parents,
            at=1_500_000_000 + number * 100,
        )
    made.write()
    return made


@pytest.fixture
def api(make: RepositoryBuilder) -> GitLabApi:
    return gitlab(make.folder.parent.parent)


@pytest.fixture
def server(api: GitLabApi) -> Iterator[StandIn]:
    with StandIn(api) as running:
        yield running


@pytest.fixture(params=["folder", "url", "gitlab"])
def collecting(
    live_database: Database,
    tmp_path: Path,
    make: RepositoryBuilder,
    api: GitLabApi,
    server: StandIn,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> Collecting:
    """A branch that was collected from each kind of source, read in several pages."""
    monkeypatch.setattr(source_gitlab, "PAGE_SIZE", 10)
    monkeypatch.setattr(source_git, "IDS_MAX", 10)
    section = {"gitlab": {"url": server.url, "token": TOKEN}, "request_timeout": 5, "tries": 1}
    found = Collecting(live_database, tmp_path, **section)
    match request.param:
        case "folder":
            found.repository(make.folder, "main")
        case "url":
            found.repository(f"file://{make.folder}", "main")
        case _:
            served = api.projects.find("group/one")
            assert served is not None
            found.remote(served.number, "group/one", "main")
    assert found.collect()["failed"] == 0
    return found


def change(collecting: Collecting, statement: str, **values: object) -> None:
    with collecting.database.write() as connection:
        connection.execute(text(statement), values)


def only(collecting: Collecting) -> Verified:
    (one,) = verified(verify, collecting.context)
    return one


def missing(*shas: str) -> list[tuple[str, str]]:
    return [("missing", f"commit {sha} is not stored") for sha in shas]


def test_a_collected_branch_is_whole(collecting: Collecting, make: RepositoryBuilder) -> None:
    compared: list[int] = []
    (one,) = verified(verify, collecting.context, advance=compared.append)
    total = len(git_oracle.ids(make.folder, "main"))
    assert (one.is_ok, one.compared, one.note) == (True, total, None)
    assert sum(compared) == total
    assert max(compared) == 10


def test_deleted_commits_are_named_each_once(
    collecting: Collecting, make: RepositoryBuilder
) -> None:
    shas = git_oracle.ids(make.folder, "main")
    gone = [shas[3], shas[4], shas[-1]]
    for sha in gone:
        change(collecting, "DELETE FROM commits WHERE sha = :sha", sha=sha)
    one = only(collecting)
    assert sorted(faults([one])) == sorted(missing(*gone))
    assert one.faults == 3


def test_the_deleted_head_is_named(collecting: Collecting, make: RepositoryBuilder) -> None:
    head = git_oracle.head(make.folder)
    change(collecting, "DELETE FROM commits WHERE sha = :sha", sha=head)
    assert faults([only(collecting)]) == missing(head)


def test_of_many_missing_commits_the_first_are_named_and_all_are_counted(
    collecting: Collecting, make: RepositoryBuilder
) -> None:
    change(collecting, "DELETE FROM commits")
    one = only(collecting)
    assert len(one.named) == NAMED_MAX
    assert one.faults == len(git_oracle.ids(make.folder, "main"))


def test_a_commit_that_is_stored_twice_is_named(
    collecting: Collecting, make: RepositoryBuilder
) -> None:
    head = git_oracle.head(make.folder)
    change(collecting, "CREATE TABLE without_keys AS SELECT * FROM commits")
    change(collecting, "DROP TABLE commits")
    change(collecting, "ALTER TABLE without_keys RENAME TO commits")
    change(collecting, "INSERT INTO commits SELECT * FROM commits WHERE sha = :sha", sha=head)
    assert faults([only(collecting)]) == [("repeated", f"commit {head} is stored 2 times")]


def test_the_commits_of_another_branch_do_not_stand_in(
    collecting: Collecting, make: RepositoryBuilder
) -> None:
    head = git_oracle.head(make.folder)
    change(collecting, "UPDATE commits SET branch_name = 'other' WHERE sha = :sha", sha=head)
    assert faults([only(collecting)]) == missing(head)


def test_newer_commits_are_a_note_and_no_fault(
    collecting: Collecting, make: RepositoryBuilder
) -> None:
    make.commit("main", {"later": lines(1)}, at=1_600_000_000)
    make.write()
    one = only(collecting)
    assert one.is_ok
    assert one.note == "the branch has moved since it was collected; newer commits are not compared"


def test_a_followed_branch_that_was_never_collected_is_no_proof(
    collecting: Collecting, make: RepositoryBuilder
) -> None:
    collecting.repository(make.folder.parent / "two.git", "main", path="zzz")
    found = verified(verify, collecting.context)
    assert [one.problem for one in found] == [None, "not collected yet"]


def test_a_source_that_does_not_answer_is_no_proof_and_the_others_are_compared(
    collecting: Collecting, make: RepositoryBuilder, server: StandIn
) -> None:
    shutil.copytree(make.folder, copy := make.folder.parent / "two.git")
    collecting.repository(copy, "main", path="zzz")
    collecting.collect()
    change(
        collecting,
        "UPDATE projects SET location = '/nowhere', kind = 'git', remote_id = NULL"
        " WHERE path <> 'zzz'",
    )
    gone, whole = verified(verify, collecting.context)
    assert not gone.is_ok
    assert "/nowhere" in str(gone.problem)
    assert whole.is_ok


def test_a_branch_that_is_not_followed_any_more_is_not_compared(collecting: Collecting) -> None:
    change(collecting, "UPDATE tsuzuki_commit_targets SET is_followed = :no", no=False)
    assert verified(verify, collecting.context) == []


def test_a_request_to_stop_ends_it_between_two_pages(collecting: Collecting) -> None:
    def stop(_compared: int) -> None:
        raise RunStopped

    with pytest.raises(RunStopped):
        verified(verify, collecting.context, advance=stop)


@pytest.mark.parametrize("collecting", ["gitlab"], indirect=True)
def test_a_server_that_leaves_commits_out_does_not_hide_what_is_missing(
    collecting: Collecting, make: RepositoryBuilder, server: StandIn
) -> None:
    """What it leaves out is found by the parents that stored commits name."""
    shas = git_oracle.ids(make.folder, "main")
    change(collecting, "DELETE FROM commits WHERE sha = :sha", sha=shas[24])
    server.faults.add(
        StandInFault(kind=StandInFaultKind.SHORT, path=f"{COMMITS}?*&page=3*", rows=0, times=None)
    )
    assert faults([only(collecting)]) == missing(shas[24])


@pytest.mark.parametrize("collecting", ["gitlab"], indirect=True)
def test_a_parent_that_the_source_does_not_have_is_no_fault(
    collecting: Collecting, make: RepositoryBuilder, tmp_path: Path
) -> None:
    """As a repository is whose history begins in the middle."""
    absent = "1234567890123456789012345678901234567890"
    change(
        collecting,
        "UPDATE tsuzuki_commit_parents SET parents = parents || ' ' || :absent WHERE commit_sha = :sha",
        absent=absent,
        sha=git_oracle.head(make.folder),
    )
    assert faults([only(collecting)]) == missing(absent)
    change(
        collecting,
        "INSERT INTO tsuzuki_commit_absences (project_id, commit_sha, run_id)"
        " SELECT project_id, :absent, 'one' FROM projects",
        absent=absent,
    )
    assert only(collecting).is_ok


@pytest.mark.parametrize("collecting", ["url"], indirect=True)
def test_a_mirror_that_was_deleted_is_fetched_again(collecting: Collecting, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / ".tsuzuki" / "mirrors")
    assert only(collecting).is_ok
