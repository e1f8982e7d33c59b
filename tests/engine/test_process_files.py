"""Files of real processes: what proves that one has ended, and what does not."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import make_url

from support.daemons import eventually
from tsuzuki.engine.process_files import (
    MachineProcessFile,
    MachineProcessFiles,
    folder_for,
    identity_of,
    this_machine,
)

PROGRAM = """
import subprocess, sys
from pathlib import Path
from tsuzuki.engine.process_files import MachineProcessFiles
files = MachineProcessFiles(Path(sys.argv[1]))
files.lock("other")
assert files.descriptor is not None
if "child" in sys.argv:
    child = subprocess.Popen(["sleep", "600"], pass_fds=[files.descriptor])
    print(child.pid, flush=True)
print("ready", flush=True)
sys.stdin.read()
if "leaves" in sys.argv:
    files.close()
"""
WAIT_SECONDS = 30.0

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return folder_for(make_url("sqlite:///here.db"), tmp_path)


@pytest.fixture
def start(folder: Path) -> Iterator[Start]:
    """Start a process that locks its file; answers when it has."""
    started = []

    def start(*options: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(folder), *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def files(folder: Path) -> Iterator[MachineProcessFiles]:
    files = MachineProcessFiles(folder)
    files.lock("ours")
    yield files
    files.close()


def until_ready(process: "subprocess.Popen[str]") -> list[str]:
    assert process.stdout is not None
    return list(iter(lambda stdout=process.stdout: stdout.readline().strip(), "ready"))


def evidence(files: MachineProcessFiles) -> dict[str, tuple[bool, bool]]:
    """By the process table and by the lock, of every other process."""
    with files.look() as others:
        return {file.name: (file.is_out_of_process_table(), file.is_unlocked()) for file in others}


def test_a_process_that_is_killed_is_proved_dead_and_its_end_is_noticed(
    files: MachineProcessFiles, start: Start
) -> None:
    other = start()
    until_ready(other)
    assert evidence(files) == {"other": (False, False)}
    other.kill()
    assert files.wait(WAIT_SECONDS) == {"other"}
    eventually(lambda: evidence(files) == {"other": (True, True)}, what="proof of its end")


def test_a_process_that_nobody_has_reaped_is_dead(files: MachineProcessFiles, start: Start) -> None:
    other = start()
    until_ready(other)
    other.kill()
    os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)
    assert Path(f"/proc/{other.pid}").exists()
    assert evidence(files) == {"other": (True, True)}


def test_a_paused_process_is_not_dead(files: MachineProcessFiles, start: Start) -> None:
    other = start()
    until_ready(other)
    other.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, other.pid, os.WSTOPPED)
    assert evidence(files) == {"other": (False, False)}


def test_what_a_dead_process_has_started_keeps_its_lock(
    files: MachineProcessFiles, start: Start
) -> None:
    other = start("child")
    (child,) = map(int, until_ready(other))
    other.kill()
    other.wait()
    assert evidence(files) == {"other": (True, False)}
    os.kill(child, signal.SIGKILL)
    assert files.wait(WAIT_SECONDS) == {"other"}
    eventually(lambda: evidence(files) == {"other": (True, True)}, what="proof of its end")


def test_a_process_that_leaves_removes_its_file(files: MachineProcessFiles, start: Start) -> None:
    other = start("leaves")
    until_ready(other)
    other.communicate("")
    assert evidence(files) == {}
    assert not files.wait(0)


def as_if_from(folder: Path, *, machine: str | None = None, started: int | None = None) -> None:
    """An unlocked file with our own pid."""
    ours = identity_of(os.getpid())
    content = (machine or ours.machine, ours.pid, ours.started if started is None else started)
    (folder / "other").write_text(json.dumps(content), encoding="utf-8")


def test_a_pid_that_another_process_has_now_is_out_of_the_process_table(
    files: MachineProcessFiles, folder: Path
) -> None:
    as_if_from(folder, started=1)
    assert evidence(files) == {"other": (True, True)}


def test_a_live_process_that_lost_its_lock_is_in_the_process_table(
    files: MachineProcessFiles, folder: Path
) -> None:
    as_if_from(folder)
    assert evidence(files) == {"other": (False, True)}


@pytest.mark.parametrize("part", [0, 1, 2], ids=["boot", "pid namespace", "time namespace"])
def test_a_process_of_another_boot_or_namespace_is_never_out_of_the_process_table(
    files: MachineProcessFiles, folder: Path, part: int
) -> None:
    elsewhere = this_machine().split()
    elsewhere[part] += "0"
    as_if_from(folder, machine=" ".join(elsewhere), started=1)
    assert evidence(files) == {"other": (False, True)}


@pytest.mark.parametrize("content", ["", "{}", "[1]", '["a", "b", "c"]', "\0"])
def test_an_unreadable_file_proves_nothing(
    files: MachineProcessFiles, folder: Path, content: str
) -> None:
    (folder / "other").write_text(content, encoding="utf-8")
    assert evidence(files)["other"][0] is False


def test_a_file_that_is_gone_proves_nothing(folder: Path) -> None:
    file = MachineProcessFile(folder / "other")
    assert (file.is_out_of_process_table(), file.is_unlocked()) == (False, False)


def test_only_one_process_looks_at_a_time(files: MachineProcessFiles, folder: Path) -> None:
    others = MachineProcessFiles(folder)
    others.lock("theirs")
    with files.look() as ours:
        assert [file.name for file in ours] == ["theirs"]
        with others.look() as theirs:
            assert list(theirs) == []
    with others.look() as theirs:
        assert [file.name for file in theirs] == ["ours"]
    others.close()


def test_a_look_at_some_files_leaves_out_the_others(
    files: MachineProcessFiles, folder: Path
) -> None:
    as_if_from(folder)
    with files.look(["other", "ours", "none"]) as some:
        assert [file.name for file in some] == ["other", "none"]
    with files.look([]) as some:
        assert list(some) == []


def test_a_folder_that_others_may_write_to_is_not_used(folder: Path) -> None:
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    files = MachineProcessFiles(folder)
    files.lock("ours")
    assert files.descriptor is None
    assert list(folder.iterdir()) == []
    as_if_from(folder, started=1)
    assert evidence(files) == {}
    files.close()


def test_waiting_ends_when_woken(files: MachineProcessFiles) -> None:
    files.wake()
    assert not files.wait(WAIT_SECONDS)


def test_a_database_has_the_same_folder_by_every_path_and_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    urls = ["sqlite:///here.db", f"sqlite:///{tmp_path}/here.db", "sqlite:///there.db"]
    here, again, there = (folder_for(make_url(url)) for url in urls)
    assert here == again != there
    users = ["postgresql://a:b@host/one", "postgresql://c@host/one", "postgresql://c@host/two"]
    one, same, two = (folder_for(make_url(url)) for url in users)
    assert one == same != two
