"""Forks a supervisor for each request of the worker, and kills what a supervisor that died leaves."""

import gc
import itertools
import os
import signal
import socket
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

from .deadline import SharedDeadline
from .processes import (
    become_subreaper,
    kill_all_children,
    kill_children,
    resume_when_parent_ends,
)
from .signal_pipe import SignalPipe
from .watch import Supervisor, refuse


class Server:
    """Runs until the worker is gone or has closed the link, and no supervisor and no process of a killed supervisor
    is left."""

    def __init__(
        self,
        link: socket.socket,
        worker: int | None,
        deadline: SharedDeadline,
        locks: Sequence[int] = (),
    ) -> None:
        self._locks = locks
        self._link: socket.socket | None = link
        self._worker = worker
        self._deadline = deadline
        self._signals = SignalPipe()
        self._supervisors: set[int] = set()

    def run(self) -> None:
        while self._link or self._supervisors:
            sources = (self._link, self._worker) if self._link else ()
            ready = self._signals.wait_with(*sources)
            self._reap()
            if self._worker in ready:
                self._start_no_more()
            elif self._link and self._link in ready:
                self._fork_supervisor(self._link)
        kill_all_children(self._signals.wait, itertools.repeat(1.0))

    def _start_no_more(self) -> None:
        """Supervisors notice by themselves that the worker is gone, unless they are stopped (SIGSTOP)."""
        self._link = None
        for pid in self._supervisors:
            os.kill(pid, signal.SIGCONT)

    def _fork_supervisor(self, link: socket.socket) -> None:
        request, descriptors, _, _ = socket.recv_fds(link, 1, 1, socket.MSG_CMSG_CLOEXEC)
        if not request:
            self._start_no_more()
            return
        with socket.socket(fileno=descriptors[0]) as control:
            try:
                pid = os.fork()
            except OSError as problem:
                refuse(control, problem)
                return
            if pid == 0:
                link.close()  # else the worker would not notice that the server is gone
                _supervise_and_exit(control, self._worker, self._deadline, self._locks)
            self._supervisors.add(pid)

    def _reap(self) -> None:
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                pid, status = ended
                is_supervisor = pid in self._supervisors
                self._supervisors.discard(pid)
                if status != 0 or not is_supervisor:
                    kill_children(spare=self._supervisors)


def _supervise_and_exit(
    control: socket.socket, worker: int | None, deadline: SharedDeadline, locks: Sequence[int]
) -> NoReturn:
    code = 1
    try:
        Supervisor(control, worker=worker, deadline=deadline, locks=locks).run()
        code = 0
    except BaseException:  # noqa: BLE001 -- the server's code must not go on in its fork
        traceback.print_exc()
    finally:
        os._exit(code)


def main() -> None:
    # After the path that the program itself takes. The last one, if any, is only to be passed on.
    link_number, deadline_number, worker_pid, *locks = map(int, sys.argv[2:])
    link = socket.socket(fileno=link_number)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    become_subreaper()
    resume_when_parent_ends()
    try:
        worker = os.pidfd_open(worker_pid)
    except OSError:  # it is gone, or a sandbox forbids pidfds: then only the link is watched
        worker = None
    if os.getppid() != worker_pid:
        return  # it is gone; a process that it forked may hold its end of the link
    gc.freeze()  # pages that the collector does not touch are not copied by forks
    deadline = SharedDeadline(deadline_number)
    Server(link, worker, deadline, locks).run()
