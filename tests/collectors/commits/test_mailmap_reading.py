"""The mailmap of the default branch is kept: read once for each head, and never a reason to fail."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.commit_collection import Collecting
from tsuzuki.collectors.commits.sandbox.gitlab import TOKEN, gitlab
from tsuzuki.collectors.commits.sandbox.gitlab.api import GitLabApi
from tsuzuki.collectors.commits.sandbox.gitlab.repository_builder import RepositoryBuilder
from tsuzuki.collectors.commits.tables import ResultStatus
from tsuzuki.sandbox.faults import StandInFault, StandInFaultKind
from tsuzuki.sandbox.server import StandIn
from tsuzuki.store.sql.database import Database

MAILMAP = b"Ann <ann@x> <a@x>\n"


@pytest.fixture
def repository(tmp_path: Path) -> RepositoryBuilder:
    make = RepositoryBuilder(tmp_path / "served" / "group" / "one.git", default_branch="main")
    make.commit("main", {".mailmap": MAILMAP, "a": b"a\n"})
    make.commit("side", {".mailmap": b"of the side\n"})
    make.write()
    return make


@pytest.fixture
def folder(repository: RepositoryBuilder, tmp_path: Path) -> Path:
    del repository
    return tmp_path / "served"


@pytest.fixture
def server(folder: Path) -> Iterator[StandIn]:
    with StandIn(gitlab(folder)) as running:
        yield running


@pytest.fixture(params=["folder", "url", "gitlab"])
def collecting(
    request: pytest.FixtureRequest,
    live_database: Database,
    tmp_path: Path,
    folder: Path,
    server: StandIn,
) -> Collecting:
    """The repository with both branches as targets, by each of the three kinds of source."""
    section = {"gitlab": {"url": server.url, "token": TOKEN}, "tries": 1}
    found = Collecting(live_database, tmp_path, **section)
    path = folder / "group" / "one.git"
    match request.param:
        case "folder":
            found.repository(path, "main", "side")
        case "url":
            found.repository(path.as_uri(), "main", "side")
        case _:
            api = server.application
            assert isinstance(api, GitLabApi)
            project = api.projects.find("group/one")
            assert project is not None
            found.remote(project.number, "group/one", "main", "side")
    return found


def kept(collecting: Collecting) -> list[str]:
    return [row.content for row in collecting.ask("SELECT content FROM tsuzuki_commit_mailmaps")]


def test_the_mailmap_of_the_default_branch_is_kept(
    collecting: Collecting, repository: RepositoryBuilder
) -> None:
    collecting.collect()
    assert kept(collecting) == [MAILMAP.decode()]
    repository.commit("main", {".mailmap": b"Other <o@x>\n"})
    repository.write()
    collecting.collect()
    assert kept(collecting) == ["Other <o@x>\n"]


def test_an_unchanged_branch_is_not_asked_for_it_again(
    collecting: Collecting, server: StandIn
) -> None:
    collecting.collect()
    server.forget_requests()
    collecting.collect()
    assert server.count() in (0, 2)


def test_a_repository_without_one_has_an_empty_one(
    collecting: Collecting, repository: RepositoryBuilder
) -> None:
    repository.commit("main", {".mailmap": None})
    repository.write()
    collecting.collect()
    assert kept(collecting) == [""]


FILES = "/api/v4/projects/*/repository/files/*"


@pytest.mark.parametrize("collecting", ["gitlab"], indirect=True)
@pytest.mark.parametrize(
    "fault",
    [
        StandInFault(path=FILES, status=500, times=None),
        StandInFault(path=FILES, status=403, times=None),
        StandInFault(path=FILES, kind=StandInFaultKind.HTML, times=None),
        StandInFault(path=FILES, kind=StandInFaultKind.CUT, times=None),
        StandInFault(path=FILES, body='{"content": 7}', times=None),
        StandInFault(path=FILES, body="[]", times=None),
    ],
    ids=lambda fault: f"{fault.kind}-{fault.status}-{len(fault.body)}",
)
def test_one_that_cannot_be_read_fails_nothing_and_is_read_next_time(
    collecting: Collecting, server: StandIn, fault: StandInFault
) -> None:
    server.faults.add(fault)
    collection_id = collecting.collect()["collection_id"]
    assert {one.status for one in collecting.results(collection_id).values()} == {
        ResultStatus.SUCCESS
    }
    assert any("mailmap" in line for line in collecting.run_io.lines)
    assert kept(collecting) == []
    server.faults.clear()
    collecting.collect()
    assert kept(collecting) == [MAILMAP.decode()]
