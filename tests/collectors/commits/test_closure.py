"""A server that sends too little: what is missing shows by the parents that commits name, and is asked for
again before a branch counts as collected."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from support import git_oracle
from support.commit_collection import Collecting, Crash, crash_after
from support.git_histories import lines
from tsuzuki.collectors.commits.sandbox.gitlab import TOKEN, gitlab
from tsuzuki.collectors.commits.sandbox.gitlab.api import GitLabApi
from tsuzuki.collectors.commits.sandbox.gitlab.repository_builder import RepositoryBuilder
from tsuzuki.collectors.commits.sources import gitlab as source_gitlab
from tsuzuki.collectors.commits.tables import NoteKind, ResultStatus
from tsuzuki.sandbox.faults import StandInFault, StandInFaultKind
from tsuzuki.sandbox.server import StandIn
from tsuzuki.store.sql.database import Database

PAGE_SIZE = 10
LENGTH = 65
COMMITS = "/api/v4/*/repository/commits"
THIRD_PAGE = f"{COMMITS}?*&page=3*"
NO_NEXT = {"X-Next-Page": ""}

SHORT_PAGES = {
    "empty-list-in-the-middle": StandInFault(
        kind=StandInFaultKind.SHORT, path=THIRD_PAGE, rows=0, headers=NO_NEXT
    ),
    "another-page": StandInFault(
        kind=StandInFaultKind.SWAPPED,
        path=THIRD_PAGE,
        query={"page": "2"},
        headers={"X-Next-Page": "4"},
    ),
    "some-rows-of-a-page": StandInFault(kind=StandInFaultKind.SHORT, path=THIRD_PAGE, rows=6),
}
ON_EVERY_FAULT = pytest.mark.parametrize("fault", SHORT_PAGES.values(), ids=SHORT_PAGES)


@pytest.fixture
def make(tmp_path: Path) -> RepositoryBuilder:
    """A history with a merge on every page: two lines of commits that meet again and again."""
    made = RepositoryBuilder(tmp_path / "served" / "group" / "one.git")
    tip = made.commit("main", {"a": lines(1)}, at=1_500_000_000)
    for number in range(1, LENGTH):
        at = 1_500_000_000 + number * 100
        if number % 5 == 0:
            side = made.commit("side", {"b": lines(number)}, parents=[tip], at=at - 250)
            tip = made.commit("main", {"a": lines(number + 1)}, parents=[tip, side], at=at)
        else:
            tip = made.commit("main", {"a": lines(number + 1)}, parents=[tip], at=at)
    made.write()
    return made


@pytest.fixture
def api(make: RepositoryBuilder) -> GitLabApi:
    return gitlab(make.folder.parent.parent)


@pytest.fixture
def server(api: GitLabApi) -> Iterator[StandIn]:
    with StandIn(api) as running:
        yield running


@pytest.fixture
def collecting(
    live_database: Database, tmp_path: Path, server: StandIn, monkeypatch: pytest.MonkeyPatch
) -> Collecting:
    monkeypatch.setattr(source_gitlab, "PAGE_SIZE", PAGE_SIZE)
    section = {"gitlab": {"url": server.url, "token": TOKEN}, "request_timeout": 5, "tries": 1}
    return Collecting(live_database, tmp_path, **section)


@pytest.fixture
def project(collecting: Collecting, api: GitLabApi) -> int:
    found = api.projects.find("group/one")
    assert found is not None
    return collecting.remote(found.number, "group/one", "main")


def head_of(collecting: Collecting) -> str | None:
    ((head,),) = collecting.ask("SELECT head_sha FROM tsuzuki_commit_targets")
    return head


def check_whole(collecting: Collecting, project: int, folder: Path) -> None:
    assert sorted(collecting.rows(project)) == sorted(git_oracle.rows(folder, "main"))
    assert head_of(collecting) == git_oracle.head(folder)
    collecting.check()


@ON_EVERY_FAULT
def test_what_a_page_lacked_is_asked_for_again(
    collecting: Collecting,
    project: int,
    server: StandIn,
    make: RepositoryBuilder,
    fault: StandInFault,
) -> None:
    server.faults.add(fault)
    ended = collecting.collect()
    assert server.faults.waiting == []
    assert collecting.only(ended["collection_id"]).status is ResultStatus.SUCCESS
    assert ended["new_commits"] == len(git_oracle.ids(make.folder, "main"))
    check_whole(collecting, project, make.folder)


@ON_EVERY_FAULT
def test_what_is_not_sent_again_either_fails_the_target_and_comes_with_the_next_collection(
    collecting: Collecting,
    project: int,
    server: StandIn,
    make: RepositoryBuilder,
    fault: StandInFault,
) -> None:
    server.faults.add(fault)
    pages = -(-len(git_oracle.ids(make.folder, "main")) // PAGE_SIZE)
    asked = 2 if fault.headers == NO_NEXT else pages - 1
    server.faults.add(
        StandInFault(kind=StandInFaultKind.SHORT, path=COMMITS, skip=asked, times=None)
    )
    result = collecting.only(collecting.collect()["collection_id"])
    assert result.status is ResultStatus.FAILED
    assert "at least" in str(result.error_message)
    assert head_of(collecting) is None
    server.faults.clear()
    server.forget_requests()
    assert collecting.collect()["failed"] == 0
    check_whole(collecting, project, make.folder)
    assert server.count(f"{COMMITS}?ref_name={head_of(collecting)}&*") == 0


def test_a_later_range_is_checked_down_to_what_was_stored(
    collecting: Collecting, project: int, server: StandIn, make: RepositoryBuilder
) -> None:
    collecting.collect()
    before = head_of(collecting)
    for number in range(35):
        make.commit("main", {"later": lines(number + 1)}, at=1_600_000_000 + number)
    make.write()
    server.faults.add(
        StandInFault(kind=StandInFaultKind.SHORT, path=THIRD_PAGE, times=None, headers=NO_NEXT)
    )
    server.faults.add(StandInFault(path=COMMITS, status=500, skip=2, times=None))
    assert collecting.collect()["failed"] == 1
    assert head_of(collecting) == before
    server.faults.clear()
    server.forget_requests()
    assert collecting.collect()["new_commits"] == 15
    assert server.count(COMMITS) == 2
    check_whole(collecting, project, make.folder)


@pytest.mark.parametrize("number", range(1, 12))
def test_pages_stored_before_a_crash_are_part_of_the_proof(
    collecting: Collecting,
    project: int,
    server: StandIn,
    make: RepositoryBuilder,
    number: int,
) -> None:
    server.faults.add(replace(SHORT_PAGES["some-rows-of-a-page"], rows=3))
    try:
        collecting.collect(after=crash_after(number))
    except Crash:
        assert collecting.collect()["failed"] == 0
    check_whole(collecting, project, make.folder)


def test_a_rate_limit_while_asking_again_costs_nothing(
    collecting: Collecting, project: int, server: StandIn, make: RepositoryBuilder
) -> None:
    server.faults.add(SHORT_PAGES["empty-list-in-the-middle"])
    server.faults.add(StandInFault(status=429, path=COMMITS, skip=3, headers={"Retry-After": "1"}))
    assert collecting.collect()["failed"] == 0
    check_whole(collecting, project, make.folder)


def test_a_parent_that_the_server_does_not_have_fails_once_and_is_noted_from_then_on(
    collecting: Collecting, project: int, server: StandIn, make: RepositoryBuilder
) -> None:
    gone = cut_history(server, make.folder)
    result = collecting.only(collecting.collect()["collection_id"])
    assert result.status is ResultStatus.FAILED
    assert gone[:12] in str(result.error_message)
    assert head_of(collecting) is None
    result = collecting.only(collecting.collect()["collection_id"])
    assert result.status is ResultStatus.SUCCESS
    assert [note.kind for note in result.notes] == [NoteKind.PARENTS_ABSENT]
    assert head_of(collecting) == git_oracle.head(make.folder)
    stored = len(collecting.rows(project))
    make.commit("main", {"later": lines(1)}, at=1_600_000_000)
    make.write()
    result = collecting.only(collecting.collect()["collection_id"])
    assert (result.status, result.new_commits_count, result.notes) == (ResultStatus.SUCCESS, 1, ())
    assert len(collecting.rows(project)) == stored + 1


def test_a_parent_that_was_absent_for_one_collection_only_is_collected(
    collecting: Collecting, project: int, server: StandIn, make: RepositoryBuilder
) -> None:
    cut_history(server, make.folder)
    assert collecting.collect()["failed"] == 1
    server.faults.clear()
    result = collecting.only(collecting.collect()["collection_id"])
    assert (result.status, result.notes) == (ResultStatus.SUCCESS, ())
    check_whole(collecting, project, make.folder)


def cut_history(server: StandIn, folder: Path) -> str:
    """Let the server know nothing of the first commits of a history, and return the newest of them."""
    _newest, gone, *_older = git_oracle.ids(folder, "--max-parents=1", "--reverse", "main")[:3][
        ::-1
    ]
    places = git_oracle.ids(folder, "main")
    page, rows = divmod(places.index(gone), PAGE_SIZE)
    unknown = f'{{"message": "400 Bad request - Could not find ref: {gone}"}}'
    head = git_oracle.head(folder)
    for fault in (
        StandInFault(
            kind=StandInFaultKind.SHORT,
            path=f"{COMMITS}?ref_name={head}&*page={page + 1}",
            rows=rows,
        ),
        StandInFault(path=f"{COMMITS}?ref_name={gone}&*", body="[]"),
        StandInFault(path=f"*/repository/merge_base?*{gone}*", status=400, body=unknown),
    ):
        server.faults.add(replace(fault, times=None))
    return gone


def test_a_history_collected_by_an_earlier_version_is_checked_once(
    collecting: Collecting, project: int, server: StandIn, make: RepositoryBuilder
) -> None:
    collecting.collect()
    lost = git_oracle.ids(make.folder, "main")[20:30]
    with collecting.database.write() as connection:
        for sha in lost:
            connection.exec_driver_sql(f"DELETE FROM commits WHERE sha = '{sha}'")
            connection.exec_driver_sql(
                f"DELETE FROM tsuzuki_commit_parents WHERE commit_sha = '{sha}'"
            )
        connection.exec_driver_sql("UPDATE tsuzuki_commit_targets SET closed_sha = NULL")
    assert collecting.collect()["failed"] == 0
    assert {row.sha for row in collecting.rows(project)} == set(git_oracle.ids(make.folder, "main"))
    server.forget_requests()
    collecting.collect()
    assert server.count() == 1


@ON_EVERY_FAULT
def test_commits_that_are_completed_later_are_not_left_out_either(
    collecting: Collecting,
    project: int,
    server: StandIn,
    make: RepositoryBuilder,
    fault: StandInFault,
) -> None:
    collecting.collect()
    collecting.forget_details()
    server.faults.add(fault)
    assert collecting.collect()["failed"] == 1
    assert collecting.parents() < git_oracle.parents(make.folder, "main")
    assert collecting.collect()["failed"] == 0
    assert collecting.parents() == git_oracle.parents(make.folder, "main")
    check_whole(collecting, project, make.folder)
