"""Our descendant processes: list them, reap them, and signal them without hitting a reused pid."""

import ctypes
import os
import signal
from collections.abc import Container, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

PR_SET_CHILD_SUBREAPER = 36


class Process(NamedTuple):
    """A row of the process table. `started` tells two processes with the same pid apart."""

    pid: int
    parent: int
    group: int
    started: int


def become_subreaper() -> None:
    """Become a subreaper: from now on a descendant that loses its parent becomes our child."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(1))


def has_ended(child: int) -> bool:
    """Whether this child is dead. It is not reaped, so that its pid is not reused; other dead children are."""
    while dead := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
        if dead.si_pid == child:
            return True
        os.waitpid(dead.si_pid, 0)
    return False


def has_children() -> bool:
    """Whether a child is alive, after reaping the dead ones."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def kill_children(*, spare: Container[int] = ()) -> None:
    """Kill our children. Their own children become ours by that: call it again until there are none."""
    me = os.getpid()
    for process in _table():
        if process.parent == me and process.pid not in spare:
            with suppress(OSError):
                os.kill(process.pid, signal.SIGKILL)


def kill_group(leader: int) -> None:
    """Kill a process group. `leader` must be a child of ours that is not reaped yet."""
    with suppress(OSError):
        os.killpg(leader, signal.SIGKILL)


def terminate(leader: int) -> None:
    """SIGTERM to the leader's group, and to the leaders of other groups among our descendants: `timeout` makes
    a group and forwards its signals, so a signal to its whole group would arrive twice. Then SIGCONT, without
    which a stopped process would not receive SIGTERM."""
    others = [p for p in _descendants(os.getpid()) if p.pid == p.group != leader]
    for number in (signal.SIGTERM, signal.SIGCONT):
        with suppress(OSError):
            os.killpg(leader, number)
        for process in others:
            _signal(process, number)


def _signal(process: Process, number: int) -> None:
    """Signal a process that may not be our child, unless its pid was reused."""
    with suppress(OSError):
        pidfd = os.pidfd_open(process.pid)
        try:
            if _entry(process.pid) == process:
                signal.pidfd_send_signal(pidfd, number)
        finally:
            os.close(pidfd)


def _descendants(root: int) -> list[Process]:
    by_parent: dict[int, list[Process]] = {}
    for process in _table():
        by_parent.setdefault(process.parent, []).append(process)
    found = by_parent.pop(root, [])
    for process in found:  # which grows while we walk it
        found.extend(by_parent.pop(process.pid, []))
    return found


def _table() -> Iterator[Process]:
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                yield _entry(int(folder.name))


def _entry(pid: int) -> Process:
    # The program's name stands in parentheses and may contain anything, parentheses too.
    fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    return Process(pid, int(fields[1]), int(fields[2]), int(fields[19]))
