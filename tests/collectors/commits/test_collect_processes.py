"""Collecting from GitLab as a person does: typed commands, real processes, a stand-in as the server."""

import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support import git_oracle
from support.daemons import be_quick, eventually
from support.databases import all_components, opened
from support.forked_program import ForkedProgram
from support.git_histories import straight
from support.workspace import Ended, Workspace
from tsuzuki.collectors.commits.sandbox.gitlab import TOKEN, gitlab
from tsuzuki.collectors.commits.sandbox.gitlab.api import GitLabApi
from tsuzuki.collectors.commits.sandbox.gitlab.repository_builder import RepositoryBuilder
from tsuzuki.sandbox.faults import StandInFault, StandInFaultKind
from tsuzuki.sandbox.server import StandIn
from tsuzuki.store.schema.migrate import Component


@dataclass(frozen=True, kw_only=True)
class CommitsWorkspace:
    """A workspace pointed at the stand-in."""

    workspace: Workspace
    server: StandIn
    api: GitLabApi
    environ: dict[str, str]

    @property
    def folder(self) -> Path:
        return self.api.projects.folder / "group"

    def ok(self, *words: str) -> Ended:
        return self.workspace.ok("commits", *words, **self.environ)

    def collect(self) -> dict[str, dict[str, Any]]:
        """The result of each target by `project branch`."""
        ended = self.ok("collect", "--output", "json")
        return {f"{row['path']} {row['branch_name']}": row for row in ended.data["results"]}

    def exported(self) -> set[git_oracle.Row]:
        rows = self.ok("export", "--format", "json").data
        return {git_oracle.Row(*(row[name] for name in git_oracle.Row._fields)) for row in rows}

    def start_collecting(self) -> ForkedProgram:
        """Collect in a process of its own, to be killed."""
        return self.workspace.start("commits", "collect", "--quiet", **self.environ)


@pytest.fixture
def components() -> Sequence[Component]:
    return all_components()


@pytest.fixture
def workspace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], database_url: str
) -> Iterator[CommitsWorkspace]:
    for name in ("repositories", "workspace"):
        (tmp_path / name).mkdir()
    api = gitlab(tmp_path / "repositories")
    with StandIn(api) as server:
        workspace = Workspace(tmp_path / "workspace", capsys)
        environ = {
            "TSUZUKI_COMMITS_GITLAB_URL": server.url,
            "TSUZUKI_COMMITS_GITLAB_TOKEN": TOKEN,
            "TSUZUKI_DATABASE_URL": database_url,
        }
        workspace.ok("init", "--quiet", **environ)
        yield CommitsWorkspace(workspace=workspace, server=server, api=api, environ=environ)


def test_deleted_renamed_empty_and_moved_are_told_and_nothing_is_lost(
    workspace: CommitsWorkspace,
) -> None:
    make = straight(workspace.folder / "tool.git", 4)
    RepositoryBuilder(workspace.folder / "empty.git")
    make.commit("side", {"s": b"s\n"}, parents=[git_oracle.head(make.folder)], at=1_700_000_000)
    make.write()
    workspace.ok("projects", "sync")
    workspace.ok("add-target", "group/tool")
    workspace.ok("add-target", "group/tool", "side")
    workspace.ok("add-target", "group/empty", "main")
    first = workspace.collect()
    assert [note["kind"] for note in first["group/empty main"]["notes"]] == ["empty_repository"]
    everything = git_oracle.rows(make.folder, "main", "side")
    project = workspace.api.projects.find("group/tool")
    assert project is not None
    make.point("next", git_oracle.head(make.folder))
    make.delete("side")
    project.repository.set_default_branch("next")
    workspace.api.projects.rename(project, "group/device")
    second = workspace.collect()
    kinds = {name: {n["kind"] for n in row["notes"]} for name, row in second.items()}
    assert kinds["group/device main"] == {"project_renamed", "default_moved"}
    assert "branch_gone" in kinds["group/device side"]
    assert "group/device next" in workspace.collect()
    assert workspace.exported() == everything


@pytest.mark.slow
def test_killed_at_every_page_boundary_it_goes_on_behind_the_last_page(
    workspace: CommitsWorkspace, database_url: str
) -> None:
    make = straight(workspace.folder / "long.git", 350)
    workspace.ok("add-target", "group/long")
    with opened(database_url) as database:
        be_quick(database)
    for page in (1, 2, 3, 4):
        workspace.server.faults.add(
            StandInFault(kind=StandInFaultKind.HANG, path=f"*/commits?*page={page}")
        )
        process = workspace.start_collecting()
        eventually(lambda: workspace.server.faults.held == 1, what=f"page {page} to be asked for")
        process.send_signal(signal.SIGKILL)
        process.wait()
        eventually(lambda: workspace.server.faults.held == 0, what="the server to notice")
        assert len(workspace.exported()) == (page - 1) * 100
        workspace.server.faults.clear()
    workspace.collect()
    assert workspace.exported() == git_oracle.rows(make.folder, "main")
    pages = [
        seen.request.query["page"]
        for seen in workspace.server.requests
        if seen.request.path.endswith("/commits") and seen.status == 200
    ]
    assert pages == ["1", "2", "3", "4"]
