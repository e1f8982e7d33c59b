"""The worker's side of its supervisors: hands each command over, and holds our ends of its pipes."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tsuzuki.engine.executors.command.environment import inherited
from tsuzuki.engine.executors.command.spec import CommandSpec

CLOSE_SECONDS_MAX = 5.0

_HERE = Path(__file__).parent
_PROGRAM = """
import sys
sys.path.append(sys.argv[1])
from supervisor.server import main
main()
"""
"""Imports the supervisor as a top-level package, so that the packages around it are not imported: it does
not need them."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """Our ends of a command under way; none of them blocks. If we close `control`, the command is killed;
    the supervisor closes its end after its report."""

    control: socket.socket
    stdout: int
    stderr: int


class SupervisorClient:
    """Starts the supervisor server when it is first needed, and again if it died."""

    def __init__(self, secret_names: Collection[str] = ()) -> None:
        self._secret_names = secret_names
        self._lock = threading.Lock()
        self._server: subprocess.Popen[bytes] | None = None
        self._link: socket.socket | None = None

    def start(self, spec: CommandSpec) -> Command:
        """Start the command under a supervisor. Its end is in the report, and so is an error at its start.

        Raises `OSError` if it could not be handed over.
        """
        with ExitStack() as theirs, ExitStack() as undo:
            ours, control = socket.socketpair()
            theirs.callback(control.close)
            undo.callback(ours.close)
            ours.setblocking(False)
            stdout, stdout_end = _pipe(theirs, undo)
            stderr, stderr_end = _pipe(theirs, undo)
            document = _document(spec, theirs)
            self._hand_over([control.fileno(), stdout_end, stderr_end, document])
            undo.pop_all()
            return Command(control=ours, stdout=stdout, stderr=stderr)

    def close(self) -> None:
        """Start nothing more. The server ends when the last command has."""
        with self._lock:
            self._disconnect()

    def _hand_over(self, descriptors: Sequence[int]) -> None:
        with self._lock:
            if self._link is not None:
                try:
                    socket.send_fds(self._link, [b"+"], descriptors)
                except (BrokenPipeError, ConnectionResetError):
                    self._disconnect()
                else:
                    return
            self._link = self._start_server()
            socket.send_fds(self._link, [b"+"], descriptors)

    def _start_server(self) -> socket.socket:
        ours, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
        with theirs:
            self._server = subprocess.Popen(  # noqa: S603
                [
                    *(sys.executable, "-I", "-S", "-c", _PROGRAM),
                    *(str(_HERE), str(theirs.fileno()), str(os.getpid())),
                ],
                pass_fds=[theirs.fileno()],
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


def _pipe(theirs: ExitStack, undo: ExitStack) -> tuple[int, int]:
    reading, writing = os.pipe()
    undo.callback(os.close, reading)
    theirs.callback(os.close, writing)
    os.set_blocking(reading, False)
    return reading, writing


def _document(spec: CommandSpec, theirs: ExitStack) -> int:
    """The spec as a file in memory, so that it is handed over in one message however long it is."""
    document = os.memfd_create("tsuzuki-spec")
    theirs.callback(os.close, document)
    os.pwrite(document, spec.as_bytes(), 0)
    return document
