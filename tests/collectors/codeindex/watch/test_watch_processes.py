"""Many processes on one tree: one works, the others wait and answer; the last one gone leaves nothing behind."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from support.waiting import wait_until
from tsuzuki.collectors.codeindex.index_file import FOLDER_VARIABLE, index_path

PROCESSES = 16
SERVERS = """
import os, pathlib, sys
from tsuzuki.collectors.codeindex.service.answers import CodeAnswers
from tsuzuki.collectors.codeindex.service.watcher import Watcher
root = pathlib.Path(sys.argv[1])

def tell(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())

def serve():
    states = set()
    def on_event(event):
        if event.state not in states and event.state != "building":
            states.add(event.state)
            tell("state", os.getpid(), event.state)
    watcher = Watcher(root, on_event=on_event).start()
    answers = CodeAnswers.of(str(root), cwd=root, environ=os.environ)
    while os.read(0, 1):
        (excerpt,) = answers.read(["total"]).value
        tell("answer", excerpt.start, excerpt.lines[1][1].strip())
    assert watcher.close()

for _ in range(int(sys.argv[2])):
    if os.fork() == 0:
        serve()
        os._exit(0)
ends = [os.wait()[1] for _ in range(int(sys.argv[2]))]
tell("ends", *ends)
"""
LIMITED = """
import pathlib, sys, threading
from tsuzuki.collectors.codeindex.watch.notifier import NotificationsRefused, Notifier
try:
    Notifier(pathlib.Path(sys.argv[1]), stopping=threading.Event(), is_own=lambda _: False)
except NotificationsRefused as refused:
    print(refused)
"""


@pytest.fixture
def servers(tree: Path, index_folder: Path) -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen(
        [sys.executable, "-c", SERVERS, str(tree), str(PROCESSES)],
        env={**os.environ, FOLDER_VARIABLE: str(index_folder)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        yield process
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


def test_sixteen_servers_of_one_tree(
    servers: "subprocess.Popen[str]", tree: Path, index_folder: Path
) -> None:
    assert servers.stdin is not None
    assert servers.stdout is not None

    def told(count: int) -> list[list[str]]:
        assert servers.stdout is not None
        return [servers.stdout.readline().split(maxsplit=2)[1:] for _ in range(count)]

    def has(name: str) -> bool:
        with closing(sqlite3.connect(index_path(tree, index_folder))) as connection:
            found = connection.execute("SELECT 1 FROM symbols WHERE name = ?", (name,))
            return found.fetchone() is not None

    states = told(PROCESSES)
    working = [int(pid) for pid, state in states if state.strip() == "watching"]
    assert len(working) == 1
    assert [state.strip() for _, state in states].count("waiting") == PROCESSES - 1

    above = "# comment\n" * 45
    (tree / "shop" / "sums.py").write_text(f"{above}def total():\n    return 7\n")
    servers.stdin.write("?" * PROCESSES)
    servers.stdin.flush()
    assert {tuple(words) for words in told(PROCESSES)} == {("46", "return 7\n")}

    os.kill(working[0], signal.SIGKILL)
    ((pid, state),) = told(1)
    assert state.strip() == "watching"
    assert int(pid) != working[0]
    (tree / "main.py").write_text("def after_the_first_died():\n    pass\n")
    wait_until(lambda: has("after_the_first_died"), "the second has taken over")

    servers.stdin.close()
    ends = servers.stdout.read().split("ends ")[1].split()
    assert sorted(ends) == ["0"] * (PROCESSES - 1) + ["9"]
    assert servers.wait() == 0
    with pytest.raises(ProcessLookupError):
        os.killpg(servers.pid, 0)
    # Connections that close at the same moment leave the log to the next one that does.
    assert has("after_the_first_died")
    assert [one.suffix for one in index_folder.iterdir()] == [".sqlite"]
    with closing(sqlite3.connect(index_path(tree, index_folder))) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def in_namespace(*command: str) -> "subprocess.CompletedProcess[str]":
    """A command in a user namespace of its own, with 0 inotify instances and 2 watches at most."""
    return subprocess.run(
        ["unshare", "--user", "--map-root-user", "sh", "-c", *command],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


@pytest.mark.skipif(
    shutil.which("unshare") is None or in_namespace("true").returncode != 0,
    reason="needs user namespaces",
)
@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ("watches", "limit of watched folders"),
        ("instances", "limit of inotify instances"),
    ],
)
def test_a_real_limit_of_the_system_is_named(tree: Path, limit: str, words: str) -> None:
    for number in range(5):
        (tree / f"folder{number}").mkdir()
    allowed = {"watches": 2, "instances": 0}[limit]
    shell = f'echo {allowed} > /proc/sys/user/max_inotify_{limit} && exec "$0" -c "$1" "$2"'
    ended = in_namespace(shell, sys.executable, LIMITED, str(tree))
    assert words in ended.stdout, ended.stderr
