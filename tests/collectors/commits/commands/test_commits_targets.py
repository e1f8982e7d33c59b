"""`tsuzuki commits add-target`: many branches of one project, and of every project at once."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support import git_oracle
from support.git_histories import straight
from support.workspace import Workspace
from tsuzuki.collectors.commits.sandbox.gitlab import TOKEN, gitlab
from tsuzuki.collectors.commits.sandbox.gitlab.repository_builder import RepositoryBuilder
from tsuzuki.sandbox.faults import StandInFault, StandInFaultKind
from tsuzuki.sandbox.server import StandIn

BRANCHES = ["feature", "main", "release/1", "release/2"]


def with_branches(folder: Path) -> Path:
    make = straight(folder, 4)
    for name in BRANCHES:
        make.point(name, git_oracle.head(folder))
    make.write()
    return folder


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return with_branches(tmp_path / "repositories" / "one.git")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[StandIn]:
    """A GitLab with a project of four branches, one of a single branch, and an empty one."""
    with_branches(tmp_path / "served" / "group" / "one.git")
    straight(tmp_path / "served" / "group" / "two.git", 3)
    RepositoryBuilder(tmp_path / "served" / "group" / "void.git").write()
    with StandIn(gitlab(tmp_path / "served")) as running:
        yield running


@pytest.fixture
def environ(server: StandIn) -> dict[str, str]:
    return {"TSUZUKI_COMMITS_GITLAB_URL": server.url, "TSUZUKI_COMMITS_GITLAB_TOKEN": TOKEN}


def outcomes(rows: list[dict[str, Any]]) -> dict[tuple[str, str | None], str]:
    return {(Path(row["project"]).name, row["branch"]): row["outcome"] for row in rows}


def followed(workspace: Workspace) -> list[str]:
    return sorted(target["branch"] for target in workspace.data("commits", "targets"))


@pytest.mark.parametrize("is_url", [False, True], ids=["folder", "url"])
def test_every_branch_of_a_repository_is_followed(
    workspace: Workspace, repository: Path, is_url: bool
) -> None:
    place = f"file://{repository}" if is_url else str(repository)
    workspace.ok("commits", "add-target", place, "main")
    rows = workspace.data("commits", "add-target", place, "--all-branches")
    assert {row["branch"]: row["outcome"] for row in rows} == {
        "feature": "added",
        "main": "present",
        "release/1": "added",
        "release/2": "added",
    }
    assert followed(workspace) == BRANCHES
    assert workspace.data("commits", "collect")["success_count"] == 4


def test_a_pattern_selects_branches_and_the_sum_is_told(
    workspace: Workspace, repository: Path
) -> None:
    words = ("add-target", str(repository), "--pattern", "release/*", "--pattern", "main")
    ended = workspace.ok("commits", *words)
    assert "3 added." in ended.err
    assert followed(workspace) == ["main", "release/1", "release/2"]
    audited = workspace.data("audit", "ls")
    assert sum(one["action"] == "commits.target.add" for one in audited) == 3
    again = workspace.ok("commits", *words)
    assert "3 already followed." in again.err


def test_a_dry_run_changes_nothing_not_even_the_projects(
    workspace: Workspace, repository: Path
) -> None:
    workspace.ok("commits", "targets")  # the database is there
    for words in (("--all-branches",), ("main",), ()):
        rows = workspace.data("commits", "add-target", str(repository), *words, "--dry-run")
        assert {row["outcome"] for row in rows} == {"would_add"}
        assert {row["project_id"] for row in rows} == {None}
    assert workspace.data("commits", "projects", "ls") == []
    assert workspace.data("commits", "targets") == []
    workspace.ok("commits", "add-target", str(repository))
    rows = workspace.data("commits", "add-target", str(repository), "--all-branches", "--dry-run")
    assert sorted(row["outcome"] for row in rows) == ["present"] + ["would_add"] * 3
    assert followed(workspace) == ["main"]


def test_a_pattern_that_matches_nothing_is_refused_with_what_may_be_meant(
    workspace: Workspace, repository: Path
) -> None:
    ended = workspace.run(
        "commits", "add-target", str(repository), "--pattern", "relaese/1", "-o", "json"
    )
    assert (ended.code, ended.error["code"]) == (4, "branch_unknown")
    assert 'Did you mean "release/1"?' in ended.error["hint"]


@pytest.mark.parametrize(
    "words",
    [
        (),
        (".", "--all-projects"),
        (".", "main", "--all-branches"),
        (".", "main", "--pattern", "x"),
        (".", "--pattern", ""),
    ],
    ids=str,
)
def test_what_excludes_each_other_is_refused(workspace: Workspace, words: tuple[str, ...]) -> None:
    ended = workspace.run("commits", "add-target", *words, "-o", "json")
    assert (ended.code, ended.error["code"]) == (2, "usage")
    assert ended.error["hint"]


def test_the_default_branch_of_every_project_is_followed(
    workspace: Workspace, repository: Path, environ: dict[str, str]
) -> None:
    workspace.ok("commits", "projects", "sync", **environ)
    workspace.ok("commits", "projects", "add", str(repository))
    ended = workspace.ok("commits", "add-target", "--all-projects", **environ)
    assert "3 added, 1 without a match." in ended.err
    rows = workspace.data("commits", "add-target", "--all-projects", **environ)
    assert outcomes(rows) == {
        ("one", "main"): "present",
        ("one.git", "main"): "present",
        ("two", "main"): "present",
        ("void", None): "no_match",
    }


def test_matching_branches_of_every_project_cost_one_listing_each(
    workspace: Workspace, server: StandIn, environ: dict[str, str]
) -> None:
    workspace.ok("commits", "projects", "sync", **environ)
    server.forget_requests()
    words = ("add-target", "--all-projects", "--pattern", "release/*")
    rows = workspace.data("commits", *words, **environ)
    assert server.count() == 3
    assert outcomes(rows) == {
        ("one", "release/1"): "added",
        ("one", "release/2"): "added",
        ("two", None): "no_match",
        ("void", None): "no_match",
    }
    nothing = workspace.run("commits", "add-target", "--all-projects", "--pattern", "x", **environ)
    assert nothing.code == 4


def test_a_project_that_fails_does_not_stop_the_others_and_ends_with_1(
    workspace: Workspace, repository: Path, server: StandIn, environ: dict[str, str]
) -> None:
    workspace.ok("commits", "projects", "sync", **environ)
    workspace.ok("commits", "projects", "add", str(repository))
    server.faults.add(
        StandInFault(path="*/branches*", status=403, body='{"message":"403 Forbidden"}')
    )
    words = ("commits", "add-target", "--all-projects", "--all-branches", "-o", "json")
    ended = workspace.run(*words, **environ)
    assert ended.code == 1
    failed, *others = sorted(ended.data, key=lambda row: row["outcome"] != "failed")
    assert "403" in failed["reason"]
    assert failed["branch"] is None
    assert sum(row["outcome"] == "added" for row in others) >= 5


def test_a_host_that_does_not_answer_is_asked_once(
    workspace: Workspace, repository: Path, server: StandIn, environ: dict[str, str]
) -> None:
    workspace.ok("commits", "projects", "sync", **environ)
    workspace.ok("commits", "projects", "add", str(repository))
    server.forget_requests()
    server.faults.add(StandInFault(path="*/branches*", kind=StandInFaultKind.RESET, times=None))
    ended = workspace.run(
        "commits", "add-target", "--all-projects", "--all-branches", "-o", "json", **environ
    )
    assert ended.code == 1
    assert server.count() == 1
    assert sum(row["outcome"] == "failed" for row in ended.data) == 3
    assert followed(workspace) == BRANCHES


def test_a_pause_that_the_host_asks_for_is_kept_and_told(
    workspace: Workspace, server: StandIn, environ: dict[str, str]
) -> None:
    workspace.ok("commits", "projects", "sync", **environ)
    server.faults.add(StandInFault(path="*/branches*", status=429, headers={"Retry-After": "1"}))
    ended = workspace.ok("commits", "add-target", "--all-projects", "--all-branches", **environ)
    assert "asks for a pause of 1 s" in ended.err
    assert "5 added, 1 without a match." in ended.err


def test_without_a_project_the_next_step_is_told(workspace: Workspace) -> None:
    ended = workspace.run("commits", "add-target", "--all-projects", "-o", "json")
    assert (ended.code, ended.error["code"]) == (4, "no_projects")
    assert "projects sync" in ended.error["hint"]


def test_a_linked_work_tree_is_the_project_of_its_repository(
    workspace: Workspace, tmp_path: Path
) -> None:
    bare = with_branches(tmp_path / "served.git")
    for number, (first, second) in enumerate([("whole", "linked"), ("linked", "whole")]):
        whole, linked = tmp_path / f"whole{number}", tmp_path / f"linked{number}"
        git_oracle.git(tmp_path, "clone", "-q", str(bare), str(whole))
        git_oracle.git(whole, "worktree", "add", "-q", "-b", "feature", str(linked))
        places = {"whole": whole, "linked": linked}
        workspace.ok("commits", "add-target", str(places[first]), "main")
        workspace.ok("commits", "add-target", str(places[second]), "feature")
        workspace.ok("commits", "projects", "add", str(places[second]))
        workspace.ok("commits", "add-target", str(whole / ".git"), "main")
    found = workspace.data("commits", "projects", "ls")
    assert [Path(project["path"]).name for project in found] == ["whole0", "whole1"]
    assert followed(workspace) == ["feature", "feature", "main", "main"]


def test_a_project_stored_as_a_linked_work_tree_is_found_by_its_repository(
    workspace: Workspace, tmp_path: Path
) -> None:
    bare = with_branches(tmp_path / "served.git")
    linked = tmp_path / "linked"
    git_oracle.git(bare, "worktree", "add", "-q", str(linked), "feature")
    workspace.ok("commits", "add-target", str(linked), "feature")
    workspace.ok("commits", "add-target", str(bare), "main")
    assert len(workspace.data("commits", "projects", "ls")) == 1


@pytest.mark.parametrize("place", ["~/src/missing", "/missing/here", "./missing", "../missing"])
def test_a_missing_folder_is_not_looked_for_on_a_gitlab(
    workspace: Workspace, server: StandIn, environ: dict[str, str], place: str
) -> None:
    for words in (("add-target", place), ("projects", "add", place)):
        ended = workspace.run("commits", *words, "-o", "json", **environ)
        assert (ended.code, ended.error["code"]) == (4, "folder_unknown")
    assert server.count() == 0


def test_a_file_is_not_taken_for_a_folder(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ended = workspace.run("commits", "add-target", str(tmp_path / "file"), "-o", "json")
    assert (ended.code, ended.error["code"]) == (4, "folder_unknown")
