"""The same rows through a GitLab: one pass, many polls, killed at each page, and every bad answer."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import text

from support import git_oracle
from support.commit_collection import Collecting, Crash, crash_after
from support.git_histories import AWKWARD_BRANCH, lines, straight, wayward, with_raw_commit
from tsuzuki.collectors.commits.sandbox.gitlab import TOKEN, gitlab
from tsuzuki.collectors.commits.sandbox.gitlab.api import GitLabApi
from tsuzuki.collectors.commits.sandbox.gitlab.repository_builder import RepositoryBuilder
from tsuzuki.collectors.commits.sources import gitlab as source_gitlab
from tsuzuki.collectors.commits.tables import NoteKind, ResultStatus
from tsuzuki.sandbox.faults import StandInFault, StandInFaultKind
from tsuzuki.sandbox.server import StandIn
from tsuzuki.store.sql.database import Database

PAGE_SIZE = 6


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("gitlab")
    wayward(root / "group" / "wayward.git")
    RepositoryBuilder(root / "group" / "empty.git").write()
    return root


@pytest.fixture
def folder(template: Path, tmp_path: Path) -> Path:
    shutil.copytree(template, tmp_path / "served")
    return tmp_path / "served"


@pytest.fixture
def crooked(folder: Path) -> Path:
    return folder / "group" / "wayward.git"


@pytest.fixture
def api(folder: Path) -> GitLabApi:
    return gitlab(folder)


@pytest.fixture
def server(api: GitLabApi) -> Iterator[StandIn]:
    with StandIn(api) as running:
        yield running


@pytest.fixture
def collecting(
    live_database: Database, tmp_path: Path, server: StandIn, monkeypatch: pytest.MonkeyPatch
) -> Collecting:
    monkeypatch.setattr(source_gitlab, "PAGE_SIZE", PAGE_SIZE)
    section = {"gitlab": {"url": server.url, "token": TOKEN}, "request_timeout": 5, "tries": 2}
    return Collecting(live_database, tmp_path, **section)


def follow(collecting: Collecting, api: GitLabApi, path: str, *branches: str) -> int:
    project = api.projects.find(path)
    assert project is not None
    return collecting.remote(project.number, path, *branches)


def kinds(collecting: Collecting, collection_id: str) -> list[NoteKind]:
    return [note.kind for note in collecting.only(collection_id).notes]


def test_one_pass_stores_exactly_what_git_says(
    collecting: Collecting, api: GitLabApi, crooked: Path
) -> None:
    project = follow(collecting, api, "group/wayward", "main", AWKWARD_BRANCH)
    assert collecting.collect()["failed"] == 0
    for branch in ("main", AWKWARD_BRANCH):
        expected = git_oracle.rows(crooked, f"refs/heads/{branch}")
        assert sorted(collecting.rows(project, branch)) == sorted(expected)
    collecting.check()


def test_twenty_polls_along_a_history_lose_nothing(
    collecting: Collecting, api: GitLabApi, crooked: Path
) -> None:
    project = follow(collecting, api, "group/wayward", "main")
    steps = git_oracle.ids(crooked, "--first-parent", "--reverse", "main")
    assert len(steps) == 20
    for sha in steps:
        git_oracle.git(crooked, "update-ref", "refs/heads/main", sha)
        collecting.collect()
        assert sorted(collecting.rows(project)) == sorted(git_oracle.rows(crooked, sha))
    collecting.check()


@pytest.mark.parametrize("number", range(1, 8))
def test_after_a_crash_at_any_page_the_rows_are_those_of_git(
    collecting: Collecting, api: GitLabApi, crooked: Path, server: StandIn, number: int
) -> None:
    project = follow(collecting, api, "group/wayward", "main")
    try:
        collecting.collect(after=crash_after(number))
    except Crash:
        stored = len(collecting.rows(project))
        server.forget_requests()
        collecting.collect()
        left = len(git_oracle.ids(crooked, "main")) - stored
        assert server.count(COMMITS) <= -(-left // PAGE_SIZE) + 1
    assert sorted(collecting.rows(project)) == sorted(git_oracle.rows(crooked, "main"))
    collecting.check()


def test_an_unchanged_branch_costs_one_request(
    collecting: Collecting, api: GitLabApi, server: StandIn
) -> None:
    follow(collecting, api, "group/wayward", "main")
    collecting.collect()
    server.forget_requests()
    collecting.collect()
    assert server.count() == 1


# --- what happens to projects ---------------------------------------------------------------------


def test_a_renamed_project_is_noted_and_its_new_path_kept(
    collecting: Collecting, api: GitLabApi
) -> None:
    follow(collecting, api, "group/wayward", "main")
    collecting.collect()
    project = api.projects.find("group/wayward")
    assert project is not None
    api.projects.rename(project, "elsewhere/straight")
    assert kinds(collecting, collecting.collect()["collection_id"]) == [NoteKind.PROJECT_RENAMED]
    assert collecting.ask("SELECT path FROM projects") == [("elsewhere/straight",)]
    assert kinds(collecting, collecting.collect()["collection_id"]) == []


def test_a_force_push_a_deleted_branch_and_an_empty_repository_are_noted(
    collecting: Collecting, api: GitLabApi, folder: Path
) -> None:
    make = straight(folder / "group" / "moving.git", 8)
    api.projects.look()
    project = follow(collecting, api, "group/moving", "main", "side")
    follow(collecting, api, "group/empty", "main")
    make.point("side", git_oracle.ids(make.folder, "main")[4])
    make.write()
    collecting.collect()
    before = set(collecting.rows(project))
    make.commit("main", {"x": lines(1)}, parents=[git_oracle.ids(make.folder, "main")[2]], at=9)
    make.write()
    make.delete("side")
    results = collecting.results(collecting.collect()["collection_id"])
    found = {key: [note.kind for note in result.notes] for key, result in results.items()}
    assert found == {
        ("group/moving", "main"): [NoteKind.FORCE_PUSH],
        ("group/moving", "side"): [NoteKind.BRANCH_GONE],
        ("group/empty", "main"): [NoteKind.EMPTY_REPOSITORY],
    }
    assert set(collecting.rows(project)) == before | git_oracle.rows(make.folder, "main")
    collecting.check()


def test_a_history_that_was_replaced_is_collected_again_and_told(
    collecting: Collecting, api: GitLabApi, folder: Path
) -> None:
    make = straight(folder / "group" / "pruned.git", 5)
    project = follow(collecting, api, "group/pruned", "main")
    collecting.collect()
    before = set(collecting.rows(project))
    make.commit("main", {"f": lines(1)}, parents=[], at=1_700_000_000)
    make.write()
    prune(make.folder)
    assert kinds(collecting, collecting.collect()["collection_id"]) == [NoteKind.HISTORY_REPLACED]
    assert set(collecting.rows(project)) == before | git_oracle.rows(make.folder, "main")


def test_a_range_that_lost_its_old_end_halfway_is_started_anew(
    collecting: Collecting, api: GitLabApi, folder: Path
) -> None:
    make = straight(folder / "group" / "pruned.git", 5)
    project = follow(collecting, api, "group/pruned", "main")
    collecting.collect()
    before = set(collecting.rows(project))
    for number in range(2 * PAGE_SIZE):
        parents = [] if number == 0 else None
        make.commit("main", {"f": lines(number)}, parents=parents, at=1_700_000_000 + number)
    make.write()
    with pytest.raises(Crash):
        collecting.collect(after=crash_after(3))
    assert len(collecting.rows(project)) == 5 + PAGE_SIZE
    prune(make.folder)
    assert collecting.collect()["failed"] == 0
    assert set(collecting.rows(project)) == before | git_oracle.rows(make.folder, "main")
    collecting.check()


def test_a_branch_reset_to_an_ancestor_is_noted_and_goes_on_from_there(
    collecting: Collecting, api: GitLabApi, folder: Path
) -> None:
    make = straight(folder / "group" / "reset.git", 8)
    project = follow(collecting, api, "group/reset", "main")
    collecting.collect()
    before = set(collecting.rows(project))
    ancestor = git_oracle.ids(make.folder, "main")[3]
    git_oracle.git(make.folder, "update-ref", "refs/heads/main", ancestor)
    ended = collecting.collect()
    assert (ended["failed"], ended["new_commits"]) == (0, 0)
    assert kinds(collecting, ended["collection_id"]) == [NoteKind.FORCE_PUSH]
    assert "was reset from" in collecting.only(ended["collection_id"]).notes[0].sentence
    make.commit("main", {"after": lines(4)}, at=1_700_000_000)
    make.write()
    ended = collecting.collect()
    assert (ended["new_commits"], kinds(collecting, ended["collection_id"])) == (1, [])
    assert set(collecting.rows(project)) == before | git_oracle.rows(make.folder, "main")
    collecting.check()


def test_a_stored_range_that_leads_back_is_finished(
    collecting: Collecting, api: GitLabApi, folder: Path
) -> None:
    make = straight(folder / "group" / "stuck.git", 6)
    project = follow(collecting, api, "group/stuck", "main")
    collecting.collect()
    head, ancestor = (git_oracle.ids(make.folder, "main")[place] for place in (0, 2))
    set_range(collecting, old=head, new=ancestor)
    make.commit("main", {"after": lines(4)}, parents=[ancestor], at=1_700_000_000)
    make.write()
    ended = collecting.collect()
    assert (ended["failed"], ended["new_commits"]) == (0, 1)
    assert git_oracle.rows(make.folder, "main") < set(collecting.rows(project))


def test_a_stored_range_that_cannot_be_walked_is_given_up_with_one_note(
    collecting: Collecting, api: GitLabApi, folder: Path
) -> None:
    make = straight(folder / "group" / "lost.git", 6)
    project = follow(collecting, api, "group/lost", "main")
    collecting.collect()
    head = git_oracle.head(make.folder)
    set_range(collecting, old=head, new="0123456789" * 4)
    make.commit("main", {"after": lines(4)}, at=1_700_000_000)
    make.write()
    ended = collecting.collect()
    assert (ended["failed"], ended["new_commits"]) == (0, 1)
    (note,) = collecting.only(ended["collection_id"]).notes
    assert f"the range {head[:12]}..012345678901 " in note.sentence
    assert set(collecting.rows(project)) == git_oracle.rows(make.folder, "main")
    assert kinds(collecting, collecting.collect()["collection_id"]) == []


def test_a_first_range_that_was_lost_halfway_is_started_anew_without_a_bound(
    collecting: Collecting, api: GitLabApi, folder: Path
) -> None:
    make = RepositoryBuilder(folder / "group" / "first.git")
    for number in range(2 * PAGE_SIZE):
        make.commit("main", {"f": lines(number)}, at=1_500_000_000 + number * 40 * 86_400)
    make.write()
    project = follow(collecting, api, "group/first", "main")
    with pytest.raises(Crash):
        collecting.collect(after=crash_after(3))
    assert len(collecting.rows(project)) == PAGE_SIZE
    before = set(collecting.rows(project))
    older = git_oracle.ids(make.folder, "main")[PAGE_SIZE + 1]
    make.commit("main", {"g": lines(1)}, parents=[older], at=1_600_000_000)
    make.write()
    prune(make.folder)
    ended = collecting.collect()
    assert set(collecting.rows(project)) == before | git_oracle.rows(make.folder, "main")
    assert kinds(collecting, ended["collection_id"]) == [NoteKind.HISTORY_REPLACED]


def set_range(collecting: Collecting, *, old: str, new: str) -> None:
    with collecting.database.write() as connection:
        connection.execute(
            text("UPDATE tsuzuki_commit_targets SET range_old = :old, range_new = :new"),
            {"old": old, "new": new},
        )


@pytest.mark.parametrize(
    ("committed", "stored", "noted"),
    [  # git reads the first one, and GitLab sends the second one as git shows it
        ("1313584730 +051800", "2011-08-17T12:38:50Z", ["group/dates"]),
        ("garbage +0000", "1970-01-01T00:00:00Z", ["local"]),
        ("99999999999999 +0000", "9999-12-31T23:59:59Z", ["group/dates", "local"]),
        ("253402300000 +0100", "9999-12-31T23:46:40Z", ["group/dates"]),  # there it is 10000
    ],
)
def test_a_date_that_is_not_valid_is_stored_as_one_that_is_and_noted_by_the_commits_id(
    collecting: Collecting,
    api: GitLabApi,
    folder: Path,
    committed: str,
    stored: str,
    noted: list[str],
) -> None:
    make = straight(folder / "group" / "dates.git", 3)
    odd = with_raw_commit(make.folder, committed=committed)
    make.commit("main", {"after": lines(4)}, at=1_700_000_000)
    make.write()
    remote = follow(collecting, api, "group/dates", "main")
    local = collecting.repository(make.folder, "main", path="local")
    results = collecting.results(collecting.collect()["collection_id"])
    rows = collecting.rows(remote)
    assert sorted(rows) == sorted(collecting.rows(local))
    assert len(rows) == 5
    assert [row.committed_date_utc for row in rows if row.sha == odd] == [stored]
    assert [path for (path, _branch), result in sorted(results.items()) if result.notes] == noted
    for path in noted:
        (note,) = results[path, "main"].notes
        assert note.kind is NoteKind.DATE_NOT_VALID
        assert odd[:12] in note.sentence
        assert stored in note.sentence
    collecting.check()


def test_a_name_that_no_database_can_store_is_stored_with_replacements(
    collecting: Collecting, api: GitLabApi, server: StandIn, folder: Path
) -> None:
    make = straight(folder / "group" / "names.git", 1)
    project = follow(collecting, api, "group/names", "main")
    entity = {
        "id": git_oracle.head(make.folder),
        "author_name": "A\0B",
        "author_email": "a\ud800@x.org",
        "committed_date": "2024-02-29T23:59:59Z",
        "parent_ids": [],
        "stats": {"additions": 1, "deletions": 0},
    }
    server.faults.add(StandInFault(path=COMMITS, body=json.dumps([entity])))
    assert collecting.collect()["failed"] == 0
    (row,) = collecting.rows(project)
    assert (row.author_name, row.author_email) == ("A\ufffdB", "a\ufffd@x.org")


def test_a_repository_that_is_hidden_is_not_taken_for_a_deleted_branch(
    collecting: Collecting, api: GitLabApi, server: StandIn
) -> None:
    follow(collecting, api, "group/wayward", "main")
    collecting.collect()
    server.faults.add(
        StandInFault(
            path="/api/v4/*/repository/branches/*",
            status=404,
            body='{"message":"404 Repository Not Found"}',
            times=None,
        )
    )
    result = collecting.only(collecting.collect()["collection_id"])
    assert result.status is ResultStatus.FAILED
    assert "denies access to the repository" in str(result.error_message)


def prune(repository: Path) -> None:
    """Let git throw away what no branch holds, as a server does some time after a forced push."""
    git_oracle.git(repository, "gc", "--quiet", "--prune=now")


# --- what a server may answer ---------------------------------------------------------------------

COMMITS = "/api/v4/*/repository/commits"
BAD = [
    StandInFault(path=COMMITS, status=500, times=None),
    StandInFault(path=COMMITS, kind=StandInFaultKind.HTML, times=None),
    StandInFault(path=COMMITS, kind=StandInFaultKind.CUT, times=None),
    StandInFault(path=COMMITS, kind=StandInFaultKind.HANG, times=None),
    StandInFault(path=COMMITS, status=403, body='{"message":"ask boss@example.org"}', times=None),
]


@pytest.mark.parametrize("fault", BAD, ids=lambda fault: f"{fault.kind}-{fault.status}")
def test_a_server_that_answers_badly_fails_the_target_and_is_continued_when_it_is_well(
    collecting: Collecting, api: GitLabApi, server: StandIn, crooked: Path, fault: StandInFault
) -> None:
    project = follow(collecting, api, "group/wayward", "main")
    patient = collecting.section
    seconds = 2.0 if fault.kind is StandInFaultKind.HANG else patient.request_timeout
    collecting.section = patient.model_copy(update={"tries": 1, "request_timeout": seconds})
    server.faults.add(replace(fault, skip=1))
    result = collecting.only(collecting.collect()["collection_id"])
    assert result.status is ResultStatus.FAILED
    assert "boss" not in str(result.error_message)
    assert len(collecting.rows(project)) == PAGE_SIZE
    server.faults.clear()
    server.forget_requests()
    collecting.section = patient
    collecting.collect()
    assert sorted(collecting.rows(project)) == sorted(git_oracle.rows(crooked, "main"))
    assert not any("page=1&" in f"{seen.request.target}&" for seen in server.requests)
    collecting.check()


def test_a_wrong_token_fails_each_target_and_is_never_shown(
    collecting: Collecting, api: GitLabApi
) -> None:
    follow(collecting, api, "group/wayward", "main")
    section = collecting.section
    wrong = {"url": section.gitlab.url, "token": "glpat-not-the-right-one"}
    collecting.section = type(section)(gitlab=wrong)
    result = collecting.only(collecting.collect()["collection_id"])
    assert result.status is ResultStatus.FAILED
    assert "token" in str(result.error_message)
    assert "glpat" not in str(result.error_message)


def test_an_unknown_project_fails_alone(collecting: Collecting, api: GitLabApi) -> None:
    collecting.remote(4711, "group/gone", "main")
    follow(collecting, api, "group/wayward", "main")
    ended = collecting.collect()
    assert (ended["success"], ended["failed"]) == (1, 1)
    result = collecting.results(ended["collection_id"])["group/gone", "main"]
    assert "no project 4711" in str(result.error_message)


def test_a_rate_limit_pauses_the_host_and_loses_nothing(
    collecting: Collecting, api: GitLabApi, server: StandIn, crooked: Path
) -> None:
    project = follow(collecting, api, "group/wayward", "main", "old", "arm/1")
    server.faults.add(StandInFault(status=429, headers={"Retry-After": "1"}, times=2))
    ended = collecting.collect()
    assert ended["failed"] == 0
    assert any("pause of 1 s" in line for line in collecting.run_io.lines)
    assert sorted(collecting.rows(project)) == sorted(git_oracle.rows(crooked, "main"))


def test_a_page_that_fails_once_is_asked_for_again(
    collecting: Collecting, api: GitLabApi, server: StandIn, crooked: Path
) -> None:
    project = follow(collecting, api, "group/wayward", "main")
    server.faults.add(StandInFault(status=502, path=COMMITS, skip=1))
    assert collecting.collect()["failed"] == 0
    assert sorted(collecting.rows(project)) == sorted(git_oracle.rows(crooked, "main"))
