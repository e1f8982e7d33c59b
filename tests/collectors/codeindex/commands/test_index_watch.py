"""`tsuzuki index watch` as a process: what it prints, how it ends, and that it takes over from one that was killed."""

import fcntl
import json
import os
import pty
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.workspace import PROGRAM, Workspace, process_environment
from tsuzuki.collectors.codeindex.index_file import index_path
from tsuzuki.collectors.codeindex.watch.watch_lock import lock_path

SECONDS_MAX = 120


@pytest.fixture
def tree(empty: Workspace) -> Path:
    (empty.folder / "tree").mkdir()
    (empty.folder / "tree" / "one.py").write_text("def one():\n    pass\n")
    return empty.folder / "tree"


class WatchProcess:
    def __init__(self, tree: Path, *words: str, stderr: int = subprocess.PIPE) -> None:
        folder = str(tree.parent / "indexes")
        self.process = subprocess.Popen(
            [PROGRAM, "index", "watch", str(tree), *words],
            env=process_environment({"TSUZUKI_CODEINDEX_FOLDER": folder}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            encoding="utf-8",
        )

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def event(self, is_it: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The next event of which it is true."""
        while text := self.line():
            if is_it(event := json.loads(text)):
                return event
        raise AssertionError("the watch ended")

    def end(self, number: int = signal.SIGINT) -> tuple[int, str]:
        """Exit code, and what was said."""
        self.process.send_signal(number)
        _out, err = self.process.communicate(timeout=SECONDS_MAX)
        return self.process.returncode, err or ""


@pytest.fixture
def watch(tree: Path) -> Iterator[Callable[..., WatchProcess]]:
    started: list[WatchProcess] = []

    def start(*words: str, **options: int) -> WatchProcess:
        started.append(WatchProcess(tree, *words, **options))
        return started[-1]

    yield start
    for one in started:
        with one.process as process:
            process.kill()


def is_built(name: str) -> Callable[[dict[str, Any]], bool]:
    def is_it(event: dict[str, Any]) -> bool:
        return event["state"] == name and bool(event["job"]) and bool(event["job"]["result"])

    return is_it


def test_events_are_lines_of_json_and_an_interrupt_ends_it_at_once(
    tree: Path, watch: Callable[..., WatchProcess]
) -> None:
    first = watch("-o", "jsonl")
    built = first.event(is_built("watching"))
    assert list(built) == ["at", "root", "state", "job", "note"]
    assert built["root"] == str(tree)
    assert built["job"]["id"].startswith("watcher-")
    assert built["job"]["result"]["totalIndexedSymbols"] == 1
    (tree / "two.py").write_text("def two():\n    pass\n")
    assert first.event(is_built("watching"))["job"]["result"]["totalIndexedSymbols"] == 2

    second = watch("-o", "jsonl")
    told = second.event(lambda event: event["state"] == "waiting")
    assert told["note"] == f"process {first.process.pid} watches it"
    first.process.kill()
    first.process.wait()
    second.event(is_built("watching"))
    (tree / "three.py").write_text("def three():\n    pass\n")
    assert second.event(is_built("watching"))["job"]["result"]["totalIndexedSymbols"] == 3
    assert second.end() == (130, "")
    assert not [*(tree.parent / "indexes").glob("*.watch")]


def test_people_read_lines_and_a_terminate_is_no_failure(
    tree: Path, watch: Callable[..., WatchProcess]
) -> None:
    people = watch()
    assert "1 updated, 0 removed, 1 symbols  watcher-" in people.line()
    (tree / "one.py").unlink()
    assert "0 updated, 1 removed, 0 symbols  watcher-" in people.line()
    code, err = people.end(signal.SIGTERM)
    assert (code, err) == (0, f"Watching {tree}. Press ^C to stop.\n")


def test_people_are_told_which_process_is_waited_for_and_when_it_is_another(
    tree: Path, watch: Callable[..., WatchProcess]
) -> None:
    path = lock_path(index_path(tree, tree.parent / "indexes"))
    path.parent.mkdir(parents=True)
    with path.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        os.pwrite(held.fileno(), b"77\n", 0)
        waiting = watch()
        assert waiting.process.stderr is not None
        for pid in (77, 78):
            os.pwrite(held.fileno(), b"%d\n" % pid, 0)
            told = waiting.process.stderr.readline()
            assert told == f"Waiting to watch {tree}: process {pid} watches it.\n"


def test_on_a_terminal_a_long_build_has_a_bar(
    tree: Path, watch: Callable[..., WatchProcess]
) -> None:
    for number in range(400):
        (tree / f"m{number}.py").write_text(f"def function_{number}():\n    pass\n" * 200)
    terminal, inside = pty.openpty()
    shown = bytearray()

    def read() -> None:
        while True:
            try:
                part = os.read(terminal, 65536)
            except OSError:  # the process ended
                return
            shown.extend(part)

    reading = threading.Thread(target=read)
    watching = watch("-o", "plain", stderr=inside)
    os.close(inside)
    reading.start()
    at, job_id, status, updated, removed, symbols = watching.line().rstrip("\n").split("\t")
    assert at.endswith("Z")
    assert job_id.startswith("watcher-")
    assert (status, updated, removed, symbols) == ("completed", "401", "0", "80001")
    assert watching.end()[0] == 130
    reading.join(SECONDS_MAX)
    os.close(terminal)
    assert b"/401" in shown
    assert b"Watching" in shown


def test_one_json_document_is_refused(empty: Workspace, tree: Path) -> None:
    ended = empty.run("index", "watch", "tree", "-o", "json")
    assert (ended.code, ended.error["code"]) == (2, "endless_output")
    assert "jsonl" in ended.error["hint"]
