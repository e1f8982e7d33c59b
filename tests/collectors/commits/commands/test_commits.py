"""`tsuzuki commits`: from an empty workspace to statistics, and everything a person may do on the way."""

import csv
import io
import json
import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import pytest

from support import git_oracle
from support.daemons import eventually
from support.forked_program import ForkedProgram
from support.git_histories import lines, straight
from support.processes import in_processes
from support.workspace import Workspace, process_environment
from tsuzuki.collectors.commits.sandbox.gitlab import TOKEN, gitlab
from tsuzuki.collectors.commits.sandbox.gitlab.repository_builder import RepositoryBuilder
from tsuzuki.collectors.commits.service import CommitsService
from tsuzuki.model.errors import Conflict
from tsuzuki.sandbox.server import StandIn
from tsuzuki.wiring.application import opened


@pytest.fixture
def history(tmp_path: Path) -> RepositoryBuilder:
    return straight(tmp_path / "repositories" / "long.git", 30)


@pytest.fixture
def following(workspace: Workspace, history: RepositoryBuilder) -> Workspace:
    """A workspace that follows the main branch of `history`."""
    workspace.ok("job", "disable", "hello")
    workspace.ok("commits", "add-target", str(history.folder))
    return workspace


@pytest.fixture
def slow_git(tmp_path: Path) -> str:
    """A PATH on which git never comes to the end of a history."""
    git = tmp_path / "bin" / "git"
    git.parent.mkdir()
    real = shutil.which("git")
    script = f'case "$*" in *" log "*) exec sleep 600;; *) exec {real} "$@";; esac'
    git.write_text(f"#!/bin/sh\n{script}\n")
    git.chmod(0o755)
    return f"{git.parent}:{os.environ['PATH']}"


@pytest.fixture
def hanging(following: Workspace, slow_git: str) -> Iterator[ForkedProgram]:
    """A collection that hangs in its history, in a process of its own."""
    process = following.start("commits", "collect", PATH=slow_git)
    eventually(lambda: under_way(following), what="the collection to be under way")
    yield process
    process.kill()
    process.wait()


@contextmanager
def daemon(workspace: Workspace, path: str) -> Iterator[ForkedProgram]:
    """`tsuzuki up` in the workspace, at work."""
    process = workspace.start("up", "--no-web", PATH=path)
    try:
        eventually(lambda: workspace.data("leader", "show")["holder"], what="a leader")
        yield process
    finally:
        process.kill()
        process.wait()


def under_way(workspace: Workspace) -> bool:
    return any(target["under_way"] for target in workspace.data("commits", "targets"))


def newest(workspace: Workspace) -> dict[str, Any]:
    found: dict[str, Any] = workspace.data("commits", "runs")[0]
    return found


# --- the way of a person --------------------------------------------------------------------------


def test_from_a_folder_to_statistics(following: Workspace, history: RepositoryBuilder) -> None:
    ended = following.data("commits", "collect")
    assert (ended["run_status"], ended["success_count"], ended["pending_count"]) == (
        "completed",
        1,
        0,
    )
    expected = git_oracle.rows(history.folder, "main")
    (by_author,) = following.data("commits", "stats", "--by", "author")
    assert by_author["commits"] == len(expected)
    assert by_author["additions"] == sum(row.additions for row in expected)
    months = following.data("commits", "stats", "--by", "month,project")
    assert sum(row["commits"] for row in months) == len(expected)
    assert following.data("commits", "projects", "ls")[0]["commits"] == len(expected)
    shown = following.data("commits", "show", ended["collection_id"][:8])
    assert shown["results"][0]["new_commits_count"] == len(expected)


def test_the_next_collection_brings_only_what_is_new(
    following: Workspace, history: RepositoryBuilder
) -> None:
    following.ok("commits", "collect")
    history.commit("main", {"new": lines(4)}, at=1_700_000_000)
    history.write()
    ended = following.data("commits", "collect")
    assert ended["results"][0]["new_commits_count"] == 1


def test_everything_is_exported(following: Workspace, history: RepositoryBuilder) -> None:
    following.ok("commits", "collect")
    expected = set(git_oracle.ids(history.folder, "main"))
    table = list(csv.DictReader(io.StringIO(following.ok("commits", "export").out)))
    assert {row["sha"] for row in table} == expected
    assert {row["branch_name"] for row in table} == {"main"}
    whole = json.loads(following.ok("commits", "export", "--format", "json").out)
    assert {row["sha"] for row in whole} == expected
    listed = following.ok("commits", "export", "--format", "jsonl").out.splitlines()
    assert {json.loads(line)["sha"] for line in listed} == expected
    assert (
        json.loads(following.ok("commits", "export", "--format", "json", "--branch", "x").out) == []
    )


def test_a_failed_target_ends_with_1_and_is_all_that_is_retried(
    following: Workspace, history: RepositoryBuilder
) -> None:
    other = straight(history.folder.parent / "other.git", 5)
    following.ok("commits", "add-target", str(other.folder))
    away = history.folder.with_name("away")
    history.folder.rename(away)
    assert following.run("commits", "collect").code == 1
    failed = newest(following)
    assert (failed["success_count"], failed["failed_count"]) == (1, 1)
    away.rename(history.folder)
    ended = following.data("commits", "retry", failed["collection_id"])
    assert (ended["total_targets"], ended["success_count"]) == (1, 1)
    assert ended["results"][0]["path"] == str(history.folder)
    assert (
        following.data("commits", "show", ended["collection_id"])["retry_of"]
        == failed["collection_id"]
    )
    again = following.run("commits", "retry", ended["collection_id"], "-o", "json")
    assert (again.code, again.error["code"]) == (6, "nothing_failed")


def test_what_is_not_followed_any_more_is_left_out_and_kept(
    following: Workspace, history: RepositoryBuilder
) -> None:
    following.ok("commits", "collect")
    removed = following.data("commits", "remove-target", "long", "main", "--yes")
    assert removed == {"project": "long", "branch": "main"}
    assert following.data("commits", "targets") == []
    nothing = following.run("commits", "collect", "-o", "json")
    assert (nothing.code, nothing.error["code"]) == (4, "no_targets")
    assert following.data("commits", "stats")[0]["commits"] > 0


def test_projects_of_a_gitlab_are_synced_renamed_and_collected(
    workspace: Workspace, tmp_path: Path
) -> None:
    straight(tmp_path / "served" / "group" / "one.git", 12)
    straight(tmp_path / "served" / "group" / "two.git", 3)
    api = gitlab(tmp_path / "served")
    with StandIn(api) as server:
        environ = {
            "TSUZUKI_COMMITS_GITLAB_URL": server.url,
            "TSUZUKI_COMMITS_GITLAB_TOKEN": TOKEN,
        }
        synced = workspace.data("commits", "projects", "sync", **environ)
        assert [(p["path"], p["change"]) for p in synced] == [
            ("group/one", "new"),
            ("group/two", "new"),
        ]
        workspace.ok("commits", "add-target", "group/one", **environ)
        ended = workspace.data("commits", "collect", **environ)
        assert ended["results"][0]["new_commits_count"] == 12
        two = api.projects.find("group/two")
        assert two is not None
        api.projects.rename(two, "group/second")
        synced = workspace.data("commits", "projects", "sync", **environ)
        assert [p["change"] for p in synced] == ["unchanged", "renamed from group/two"]


def test_a_scheduled_job_collects_too(following: Workspace, history: RepositoryBuilder) -> None:
    following.append(
        "\n  nightly:\n    type: commits\n    projects: [long]\n    schedule: daily at 03:00\n"
    )
    following.ok("job", "apply")
    following.ok("job", "run", "nightly")
    following.ok("run-due", "--quiet")
    (run,) = following.data("run", "ls", "--job", "nightly")
    assert run["result"]["new_commits"] == len(git_oracle.ids(history.folder, "main"))
    assert newest(following)["collection_id"] == run["result"]["collection_id"]


# --- one at a time --------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_second_start_is_told_the_running_id_and_ends_with_6(
    following: Workspace, hanging: ForkedProgram
) -> None:
    running = newest(following)
    second = following.run("commits", "collect", "-o", "json")
    assert (second.code, second.error["code"]) == (6, "already_running")
    assert running["collection_id"] in second.error["message"]
    assert len(following.data("commits", "runs")) == 1
    assert hanging.poll() is None


@pytest.mark.slow
def test_a_collection_whose_process_was_killed_is_taken_over_at_once(
    following: Workspace, hanging: ForkedProgram, history: RepositoryBuilder
) -> None:
    left = newest(following)
    hanging.kill()
    hanging.wait()
    ended = following.data("commits", "collect")
    assert ended["collection_id"] == left["collection_id"]
    assert (ended["run_status"], ended["success_count"]) == ("completed", 1)
    exported = following.ok("commits", "export", "--format", "jsonl").out.splitlines()
    assert len(exported) == len(git_oracle.ids(history.folder, "main"))


@pytest.mark.slow
def test_a_cancelled_collection_ends_and_the_rest_stays_pending(
    following: Workspace, hanging: ForkedProgram
) -> None:
    (cancelled,) = following.data("commits", "cancel")
    assert (cancelled["run_status"], cancelled["pending_count"]) == ("cancelled", 1)
    assert hanging.wait(120) == 1
    again = following.run("commits", "cancel", "-o", "json")
    assert (again.code, again.error["code"]) == (6, "not_running")
    ended = following.data("commits", "retry", cancelled["collection_id"])
    assert ended["success_count"] == 1


@pytest.mark.slow
def test_interrupted_it_keeps_what_is_done_and_the_next_one_goes_on(
    following: Workspace, hanging: ForkedProgram
) -> None:
    left = newest(following)
    hanging.send_signal(signal.SIGINT)
    assert hanging.wait(120) == 130
    assert [run["state"] for run in following.data("run", "ls")] == ["CANCELED"]
    ended = following.data("commits", "collect")
    assert (ended["run_status"], ended["success_count"]) == ("completed", 1)
    assert following.data("commits", "show", left["collection_id"])["run_status"] == "cancelled"


@pytest.mark.slow
@pytest.mark.parametrize("words", [[], ["--branch", "main"]], ids=" ".join)
def test_interrupted_it_says_how_to_go_on_with_just_what_was_asked_for(
    following: Workspace, slow_git: str, words: list[str]
) -> None:
    with TemporaryFile("w+", encoding="utf-8") as err:
        process = ForkedProgram(
            ["commits", "collect", *words, "-o", "json"],
            cwd=following.folder,
            env=process_environment({"PATH": slow_git}),
            stderr=err,
        )
        eventually(lambda: under_way(following), what="the collection to be under way")
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 130
        err.seek(0)
        error = json.loads(err.readlines()[-1])["error"]
    command = f"retry {newest(following)['collection_id']}" if words else "collect"
    assert error["code"] == "interrupted"
    assert error["hint"].endswith(f"continue with: tsuzuki commits {command}")


@pytest.mark.slow
def test_a_run_cancelled_by_its_number_cancels_the_collection(
    following: Workspace, hanging: ForkedProgram
) -> None:
    (run,) = following.data("run", "ls")
    following.ok("run", "cancel", str(run["id"]))
    assert newest(following)["run_status"] == "cancelled"
    assert hanging.wait(120) == 1


def ask_to_start(folder: str) -> tuple[str, str]:
    with opened(cwd=Path(folder), environ={}) as application:
        try:
            service: CommitsService = application.service("commits")
            return "began", service.collections.start().collection_id
        except Conflict as refused:
            return refused.specific_code, refused.message


@pytest.mark.slow
def test_of_two_processes_that_start_at_once_one_starts_and_the_other_is_told(
    following: Workspace,
) -> None:
    answers = dict(in_processes(ask_to_start, [[str(following.folder)]] * 2))
    assert set(answers) == {"began", "already_running"}
    assert answers["began"] in answers["already_running"]


# --- which branch ---------------------------------------------------------------------------------


def clone_of(history: RepositoryBuilder, folder: Path) -> Path:
    git_oracle.git(folder, "clone", "-q", str(history.folder), str(folder / "tree"))
    git_oracle.git(folder / "tree", "checkout", "-q", "-b", "feature")
    (folder / "tree" / "sub" / "folder").mkdir(parents=True)
    return folder / "tree"


def test_a_folder_is_followed_at_its_default_branch_also_from_below_and_it_is_told(
    workspace: Workspace, history: RepositoryBuilder, tmp_path: Path
) -> None:
    tree = clone_of(history, tmp_path)
    ended = workspace.ok("commits", "add-target", str(tree / "sub" / "folder"))
    assert f"Following main of {tree}: target of origin/HEAD." in ended.err
    git_oracle.git(tree, "remote", "set-head", "origin", "--delete")
    ended = workspace.ok("commits", "add-target", str(tree))
    assert "Following feature" in ended.err
    assert "checked out, because" in ended.err
    found = workspace.data("commits", "targets")
    assert {(target["project"], target["branch"]) for target in found} == {
        (str(tree), "main"),
        (str(tree), "feature"),
    }


def test_a_branch_that_is_not_there_is_refused_with_the_one_that_may_be_meant(
    workspace: Workspace, history: RepositoryBuilder
) -> None:
    ended = workspace.run("commits", "add-target", str(history.folder), "mian")
    assert ended.code == 4
    assert "has no branch 'mian'" in ended.err
    assert 'Did you mean "main"?' in ended.err
    assert workspace.data("commits", "targets") == []


def test_detached_without_an_engine_it_says_that_it_waits(following: Workspace) -> None:
    ended = following.ok("commits", "collect", "--detach")
    assert "No engine is running" in ended.err
    assert "ENGINE AT WORK  no" in ended.out


# --- who does the work ----------------------------------------------------------------------------


@pytest.mark.slow
def test_a_process_that_is_at_work_collects_and_the_command_only_watches(
    following: Workspace,
) -> None:
    with daemon(following, os.environ["PATH"]) as process:
        assert following.data("commits", "collect")["success_count"] == 1
        (run,) = following.data("run", "ls", "--job", "commits-by-hand")
        assert f"-{process.pid}-" in run["assigned_worker_id"]


@pytest.mark.slow
def test_when_the_process_at_work_dies_the_command_steps_in(
    following: Workspace, slow_git: str
) -> None:
    with daemon(following, slow_git) as process:
        started = following.data("commits", "collect", "--detach")
        eventually(lambda: under_way(following), what="the collection to be under way")
        watching = following.start("commits", "watch")
        process.kill()
        process.wait()
        try:
            assert watching.wait(120) == 0
        finally:
            watching.kill()
            watching.wait()
    assert newest(following)["collection_id"] == started["collection_id"]
    assert newest(following)["success_count"] == 1


# --- mistakes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("collect",), 4, "no_targets"),
        (("add-target", "nowhere"), 4, "project_unknown"),
        (("projects", "add", "https://me:secret@example.org/x"), 2, "secret_in_url"),
        (("show", "abc"), 4, "collection_unknown"),
        (("retry", "abc"), 4, "collection_unknown"),
        (("cancel",), 6, "not_running"),
        (("stats", "--by", "weekday"), 2, "usage"),
        (("watch",), 4, "not_found"),
    ],
)
def test_a_mistake_is_answered_with_what_to_do(
    workspace: Workspace, words: tuple[str, ...], code: int, said: str
) -> None:
    ended = workspace.run("commits", *words, "-o", "json")
    assert (ended.code, ended.error["code"]) == (code, said)
    assert ended.error["hint"]
    assert "secret" not in ended.error["message"]


def test_the_same_folder_is_one_project(following: Workspace, history: RepositoryBuilder) -> None:
    following.ok("commits", "projects", "add", str(history.folder))
    assert len(following.data("commits", "projects", "ls")) == 1
