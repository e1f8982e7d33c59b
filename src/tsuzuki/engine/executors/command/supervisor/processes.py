"""Our descendant processes: list them, reap them, and signal them without hitting a reused pid."""

import ctypes
import fcntl
import os
import signal
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36

INHERITED_DESCRIPTOR_MIN = 20
"""Commands may use smaller descriptors for files of their own."""

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")

_prctl = ctypes.CDLL(None).prctl


class Process(NamedTuple):
    """A row of the process table. `started` tells two processes with the same pid apart."""

    pid: int
    parent: int
    group: int
    started: int


def become_subreaper() -> None:
    """Become a subreaper: from now on a descendant that loses its parent becomes our child."""
    _prctl(PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(1))


def resume_when_parent_ends() -> None:
    """Receive SIGCONT when our parent ends, so that we notice it even if we were stopped (SIGSTOP) before. The kernel
    also sends it when only the thread that forked us ends, where a signal that kills would be wrong."""
    _prctl(PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGCONT))


def end_with_parent() -> None:
    """Be killed when our parent ends. Only for a child of a process with one thread: the kernel also does so when the
    thread that forked us ends."""
    _prctl(PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL))


class KillSwitch:
    """Has the kernel kill a process group when we end, for any reason.

    The group inherits the reading end of a pipe, and only we have the writing end. When that closes, the kernel signals
    the group. PR_SET_PDEATHSIG would need a fork that copies our memory for each command: 40 % fewer per second.
    """

    def __init__(self) -> None:
        reading, self._writing = os.pipe2(os.O_CLOEXEC)
        self.descriptor = fcntl.fcntl(reading, fcntl.F_DUPFD_CLOEXEC, INHERITED_DESCRIPTOR_MIN)
        """Pass it to the group. The switch works while any process of the group has it open."""
        os.close(reading)
        fcntl.fcntl(self.descriptor, fcntl.F_SETSIG, signal.SIGKILL)
        flags = fcntl.fcntl(self.descriptor, fcntl.F_GETFL)
        fcntl.fcntl(self.descriptor, fcntl.F_SETFL, flags | os.O_ASYNC)

    def set_group(self, leader: int) -> None:
        """Kill this group from now on. `leader` must be a child of ours that is not reaped yet."""
        fcntl.fcntl(self.descriptor, fcntl.F_SETOWN, -leader)


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


def kill_all_children(wait: Callable[[float], None], pauses: Iterable[float]) -> bool:
    """Kill and reap children until none is left or the pauses are used up; return whether none is left. `wait` must
    return after the given seconds, or as soon as a child has ended."""
    for pause in pauses:
        if not has_children():
            return True
        kill_children()
        wait(pause)
    return not has_children()


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


def resident_bytes() -> int:
    """The resident memory of all our descendants; pages that they share count for each."""
    return sum(_resident_pages(process.pid) for process in _descendants(os.getpid())) * _PAGE_BYTES


def _resident_pages(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_bytes().split()[1])
    except (OSError, IndexError):  # it has ended meanwhile
        return 0


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
