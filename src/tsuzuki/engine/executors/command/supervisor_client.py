"""The worker's side of its supervisors and of the server that forks them."""

import asyncio
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from tsuzuki.engine.executors.command.environment import inherited
from tsuzuki.engine.executors.command.supervisor import START
from tsuzuki.engine.executors.command.supervisor.deadline import SharedDeadline

CLOSE_SECONDS_MAX = 5.0
REPORT_BYTES_MAX = 64 * 1024

_HERE = Path(__file__).parent
_PROGRAM = """
import sys
sys.path.append(sys.argv[1])
from supervisor.server import main
main()
"""
"""Imports the supervisor as a top-level package, so that the packages around it are not imported: it does
not need them."""


ProcessLock: TypeAlias = Callable[[], int | None]
"""The descriptor of a file that is locked until the last process which has it has ended; None if there is none."""


def no_process_lock() -> None:
    """For a process whose end nobody has to prove."""


class SupervisorConnection:
    """Our end of a supervisor's control socket. If we close it, the supervisor kills its command and ends.

    `on_readable` is called on the event loop when there is a report, or when the supervisor is gone.
    """

    __slots__ = ("_control", "is_watched", "on_readable")

    def __init__(self, control: socket.socket) -> None:
        control.setblocking(False)
        self._control = control
        self.is_watched = False
        """Whether the event loop watches it."""
        self.on_readable: Callable[[], None] | None = None

    @property
    def descriptor(self) -> int:
        return self._control.fileno()

    def hand_over(self, spec: bytes, descriptors: Sequence[int]) -> None:
        """Hand a command over. Raises `OSError` if the supervisor is gone."""
        socket.send_fds(self._control, [START, spec], descriptors)

    def watch(self) -> None:
        """Have the running event loop watch it."""
        if not self.is_watched:
            self.is_watched = True
            asyncio.get_running_loop().add_reader(self.descriptor, self._readable)

    def send(self, request: bytes) -> None:
        # It may have ended already; then its report decides.
        with suppress(OSError):
            self._control.send(request)

    def receive(self) -> bytes | None:
        """Its report; empty if it is gone, None if there is nothing yet."""
        try:
            return self._control.recv(REPORT_BYTES_MAX)
        except BlockingIOError:
            return None
        except ConnectionResetError:
            # It closed the socket before it had read everything. What it sent before that is still there.
            with suppress(OSError):
                return self._control.recv(REPORT_BYTES_MAX)
        except OSError:
            pass
        return b""

    def close(self) -> None:
        self._control.close()

    def _readable(self) -> None:
        if self.on_readable is not None:
            self.on_readable()
        else:  # nothing reads it yet: watched again when its command is attached
            self.unwatch()

    def unwatch(self) -> None:
        if self.is_watched:
            self.is_watched = False
            asyncio.get_running_loop().remove_reader(self.descriptor)


class SupervisorClient:
    """Starts the supervisor server when it is first needed, and again if it died. Thread-safe."""

    def __init__(
        self, secret_names: Collection[str] = (), *, process_lock: ProcessLock = no_process_lock
    ) -> None:
        self._secret_names = secret_names
        self._process_lock = process_lock
        self._lock = threading.Lock()
        self._server: subprocess.Popen[bytes] | None = None
        self._link: socket.socket | None = None
        self._deadline = SharedDeadline()
        self.renew_deadline = self._deadline.renew

    def new_supervisor(self) -> SupervisorConnection:
        """A new supervisor. Raises `OSError` if it could not be requested."""
        ours, control = socket.socketpair(type=socket.SOCK_SEQPACKET)
        with control, self._lock:
            try:
                self._request_fork(control.fileno())
            except OSError:
                ours.close()
                raise
        return SupervisorConnection(ours)

    def close(self) -> None:
        """Start nothing more. The server ends when the last supervisor has."""
        with self._lock:
            self._disconnect()
            self._deadline.close()

    def _request_fork(self, control: int) -> None:
        if self._link is not None:
            try:
                socket.send_fds(self._link, [START], [control])
            except (BrokenPipeError, ConnectionResetError):
                self._disconnect()
            else:
                return
        self._link = self._start_server()
        socket.send_fds(self._link, [START], [control])

    def _start_server(self) -> socket.socket:
        ours, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
        lock = self._process_lock()
        inherited_lock = () if lock is None else (lock,)
        with theirs:
            self._server = subprocess.Popen(  # noqa: S603
                [
                    *(sys.executable, "-I", "-S", "-c", _PROGRAM),
                    *(str(_HERE), str(theirs.fileno())),
                    *(str(self._deadline.descriptor), str(os.getpid())),
                    *map(str, inherited_lock),
                ],
                pass_fds=[theirs.fileno(), self._deadline.descriptor, *inherited_lock],
                env=inherited(os.environ, secret_names=self._secret_names),
                cwd=Path("/"),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                # A session of its own: Ctrl-C in the worker's terminal must not interrupt it.
                start_new_session=True,
            )
        return ours

    def _disconnect(self) -> None:
        link, server = self._link, self._server
        self._link = self._server = None
        if link is not None:
            link.close()
        if server is not None:
            try:
                server.wait(CLOSE_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                # A process of a command cannot be killed; the server stays until it has ended.
                server.returncode = 0
