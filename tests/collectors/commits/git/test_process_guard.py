"""Git ends with the process that started it, however that ends."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from support import git_oracle
from support.daemons import eventually, is_alive
from support.git_histories import straight
from tsuzuki.collectors.commits.git.process_guard import _WATCH, ProcessGuard
from tsuzuki.collectors.commits.git.program import Git
from tsuzuki.collectors.commits.sources.git import GitSource
from tsuzuki.collectors.commits.sources.source import Range
from tsuzuki.engine.run_context import RunStopped
from tsuzuki.model.clock import SystemClock

PARENT = """
import sys
from pathlib import Path
from tsuzuki.collectors.commits.git.program import Git
from tsuzuki.model.clock import SystemClock

Git(clock=SystemClock(), silence_seconds=600.0).ask(Path(sys.argv[1]), "fetch")
"""


def test_git_and_all_it_started_end_with_a_killed_parent(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    program = tmp_path / "git"
    program.write_text(
        f"#!/bin/sh\nsleep 600 &\necho $! $$ > {pids}.new\nmv {pids}.new {pids}\nwait\n"
    )
    program.chmod(0o755)
    environ = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path)], env=environ)
    eventually(pids.is_file, what="git to have started")
    children = [int(pid) for pid in pids.read_text().split()]
    assert all(is_alive(pid) for pid in children)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    for pid in children:
        eventually(lambda pid=pid: not is_alive(pid), what="git to have ended")


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the watching process is told from now on."""
    lines: list[str] = []
    tell = ProcessGuard._tell

    def note(guard: ProcessGuard, sign: str, group: int) -> None:
        if sign == "-":
            assert is_unreaped(group), "its id may be another's by now"
        lines.append(f"{sign} {group}")
        tell(guard, sign, group)

    monkeypatch.setattr(ProcessGuard, "_tell", note)
    return lines


def is_unreaped(pid: int) -> bool:
    with suppress(ChildProcessError):
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return True
    return False


def still_named(told: list[str]) -> set[str]:
    """The groups that would be killed if we ended now."""
    named = {line[2:] for line in told if line.startswith("+")}
    assert named, "nothing was started"
    assert len(told) == len(set(told))
    return named - {line[2:] for line in told if line.startswith("-")}


def test_a_git_that_ended_by_itself_is_named_no_longer(tmp_path: Path, told: list[str]) -> None:
    git = Git(clock=SystemClock(), silence_seconds=60.0)
    assert git.ask(tmp_path, "--version").code == 0
    assert git.ask(tmp_path, "no-such-command").code == 1
    assert still_named(told) == set()


def test_a_git_that_was_killed_is_named_no_longer(tmp_path: Path, told: list[str]) -> None:
    git = Git(clock=SystemClock(), silence_seconds=60.0, stopping=lambda: True)
    with pytest.raises(RunStopped):
        git.ask(tmp_path, "-c", "alias.sleep=!sleep 600", "sleep")
    assert still_named(told) == set()


def test_a_git_whose_log_was_read_to_its_end_is_named_no_longer(
    tmp_path: Path, told: list[str]
) -> None:
    folder = tmp_path / "log.git"
    straight(folder, 12)
    git = Git(clock=SystemClock(), silence_seconds=60.0)
    source = GitSource(folder=folder, git=git, page_commits_max=5)
    pages = list(source.pages(Range(old=None, new=git_oracle.head(folder))))
    assert sum(len(page.commits) for page in pages) == 12
    assert still_named(told) == set()


def test_the_watching_process_kills_what_is_still_named_and_nothing_else() -> None:
    sleepers = [subprocess.Popen(["sleep", "600"], start_new_session=True) for _ in range(3)]
    first, second, third = (sleeper.pid for sleeper in sleepers)
    said = [f"+ {first}", f"+ {second}", f"- {second}", f"- {second}", f"+ {third}", f"- {first}"]
    try:
        subprocess.run(["/bin/sh", "-c", _WATCH], input="\n".join([*said, ""]).encode(), check=True)
        assert sleepers[2].wait() == -signal.SIGKILL
        assert [sleeper.poll() for sleeper in sleepers[:2]] == [None, None]
    finally:
        for sleeper in sleepers:
            sleeper.kill()
            sleeper.wait()
