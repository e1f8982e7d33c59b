"""Commands with a tree of processes below them, and the supervisors that watch them."""

from contextlib import suppress
from typing import Any

import psutil

from support.executions import a_task
from tsuzuki.engine.task import Task

LONG_GRACE, SHORT_GRACE = 60.0, 0.2

TREE = """
sh -c 'echo $$; exec sleep 300' &
setsid sh -c 'echo $$; exec sleep 300' &
timeout 299 sh -c 'echo $$; exec sleep 300' &
python3 -c '
import os, signal
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print(os.getpid(), flush=True)
        signal.pause()
    os._exit(0)
os.wait()
'
echo $$
"""
"""Five processes that print their ids: in the group, in a session of its own, in a group of its own,
a daemon that has forked twice and lost its parent, and the shell itself."""


class Grace:
    """Time between asking a command to stop and killing it."""

    seconds = LONG_GRACE


def shell(script: str, **changes: Any) -> Task:
    return a_task("command", {"argv": ["sh", "-c", script]}, **changes)


def processes_with(words: str, *, below: int | None = None) -> list[psutil.Process]:
    """Descendants of a process (this one by default) whose command line contains these words."""
    found = []
    for process in psutil.Process(below).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if words in " ".join(process.cmdline()):
                found.append(process)
    return found


def supervisors(*, below: int | None = None) -> list[psutil.Process]:
    """The program that starts the commands, and the supervisors it has forked."""
    return processes_with("supervisor.server", below=below)
