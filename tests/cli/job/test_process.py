"""Changes of jobs by several processes at once, and by a person at a terminal."""

import os
import subprocess
from pathlib import Path

import pytest

from support.processes import in_processes
from support.workspace import PROGRAM, Workspace, process_environment
from tsuzuki.cli import run_cli

JOBS_PER_PROCESS = 5


def add_jobs(folder: str, database_url: str, prefix: str) -> list[int]:
    environ = {"TSUZUKI_DATABASE_URL": database_url}
    return [
        run_cli(
            ["job", "add", f"{prefix}-{number}", "--quiet", "--", "x"],
            environ=environ,
            cwd=Path(folder),
        )
        for number in range(JOBS_PER_PROCESS)
    ]


def test_processes_that_add_jobs_at_once_all_succeed_and_none_undoes_another(
    workspace: Workspace, database_url: str
) -> None:
    here = {"TSUZUKI_DATABASE_URL": database_url}
    workspace.ok("job", "apply", **here)
    folder = str(workspace.folder)
    codes = in_processes(add_jobs, [(folder, database_url, prefix) for prefix in ("a", "b")])
    assert codes == [[0] * JOBS_PER_PROCESS] * 2
    jobs = workspace.data("job", "ls", **here)
    assert len(jobs) == 1 + 2 * JOBS_PER_PROCESS
    assert {job["sync_state"] for job in jobs} == {"applied"}
    removed = [
        entry
        for entry in workspace.data("audit", "ls", "--limit", "1000", **here)
        if entry["action"] == "job.remove"
    ]
    assert removed == []


def test_two_programs_may_add_jobs_at_once(workspace: Workspace) -> None:
    programs = [
        subprocess.Popen(
            [PROGRAM, "job", "add", name, "--every", "1h", "--", "echo", name],
            cwd=workspace.folder,
            env=process_environment({}),
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            encoding="utf-8",
        )
        for name in ("one", "two")
    ]
    told = [program.communicate(timeout=120)[1] for program in programs]
    assert [program.returncode for program in programs] == [0, 0], told
    assert [job["name"] for job in workspace.data("job", "ls")] == ["hello", "one", "two"]


def test_without_a_terminal_nothing_is_asked(workspace: Workspace) -> None:
    before = workspace.content()
    ended = workspace.process("job", "rm", "hello")
    assert (ended.code, ended.out) == (2, "")
    assert "--yes" in ended.err
    assert workspace.content() == before


@pytest.mark.parametrize(("answer", "code", "left"), [("n", 1, ["hello"]), ("y", 0, [])])
def test_at_a_terminal_the_person_is_asked(
    answer: str, code: int, left: list[str], workspace: Workspace
) -> None:
    ours, theirs = os.openpty()
    with subprocess.Popen(
        [PROGRAM, "job", "rm", "hello"],
        cwd=workspace.folder,
        env=process_environment({"TERM": "dumb"}),
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
    ) as program:
        os.close(theirs)
        asked = os.read(ours, 1024).decode()
        assert asked.startswith("Really delete the job 'hello'? [y/N]:")
        os.write(ours, f"{answer}\n".encode())
        assert program.wait(timeout=120) == code
    os.close(ours)
    assert [job["name"] for job in workspace.data("job", "ls")] == left


def test_the_user_who_is_logged_in_is_named_in_the_audit_log(workspace: Workspace) -> None:
    assert workspace.process(*"job add other -- x".split()).code == 0
    assert workspace.process("settings", "set", "lease_seconds", "20", LOGNAME="carol").code == 0
    setting, job, *_ = workspace.data("audit", "ls")
    assert (setting["actor"], setting["object_id"]) == ("cli:carol", "lease_seconds")
    assert (job["actor"], job["action"], job["object_id"]) == ("cli:alice", "job.add", "other")
