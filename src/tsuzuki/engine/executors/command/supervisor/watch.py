"""A supervisor: starts one command after the other, watches it, cleans up, and reports how it ended."""

import errno
import itertools
import json
import math
import os
import socket
import subprocess
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from . import DESCRIPTORS_MAX, INLINE_BYTES_MAX, MEMORY, START, TERM
from .deadline import SharedDeadline
from .processes import (
    KillSwitch,
    become_subreaper,
    has_ended,
    kill_all_children,
    kill_group,
    resident_bytes,
    resume_when_parent_ends,
    terminate,
)
from .signal_pipe import SignalPipe

PAUSES_SECONDS = [0.05] * 40
"""How long the report waits for leftover processes to die. After that only the supervisor waits for them."""

LOOK_SECONDS = 1.0
"""The longest wait before the deadline is read again: a timeout does not run while the machine is suspended."""


MEMORY_SECONDS = 0.1
"""How often the memory of a command with a limit is measured."""

REQUEST_BYTES_MAX = 64
"""Of a request about the command under way."""


class _Request(NamedTuple):
    """The request to start a command. Without `stdin` its standard input is empty."""

    spec: bytes
    stdout: int
    stderr: int
    stdin: int | None


class Supervisor:
    """Runs until the worker has closed the socket, until it is gone (`worker` is its pidfd), or until a command
    has left a process that could not be killed at once: then it reports so, and waits for that process alone. Commands
    inherit `locks`: files that are locked until nothing of the worker is left."""

    def __init__(
        self,
        control: socket.socket,
        *,
        worker: int | None,
        deadline: SharedDeadline,
        locks: Sequence[int] = (),
    ) -> None:
        self._locks = locks
        self._control = control
        self._worker = worker
        self._deadline = deadline
        self._signals = SignalPipe()
        self._kill_switch = KillSwitch()
        self._is_clean = True

    def run(self) -> None:
        become_subreaper()
        resume_when_parent_ends()
        while self._is_clean and (request := self._next_request()):
            self._run(request)
        self._control.close()
        kill_all_children(self._signals.wait, itertools.repeat(1.0))

    def _next_request(self) -> _Request | None:
        """The next command; None if there will be no more."""
        while True:
            ready = self._signals.wait_with(self._worker, self._control)
            if self._worker in ready:
                return None
            if self._control not in ready:
                continue
            message, descriptors = self._receive_request()
            if not message:
                return None
            # Without descriptors it is a request to stop the last command, which had ended already.
            if descriptors:
                return _request(message.removeprefix(START), *descriptors)

    def _receive_request(self) -> tuple[bytes, list[int]]:
        try:
            message, descriptors, _, _ = socket.recv_fds(
                self._control,
                len(START) + INLINE_BYTES_MAX,
                DESCRIPTORS_MAX,
                socket.MSG_CMSG_CLOEXEC,
            )
        except ConnectionResetError:  # the worker is gone and has not read the last report
            return b"", []
        return message, descriptors

    def _run(self, request: _Request) -> None:
        """Run one command and report how it ended."""
        spec = json.loads(request.spec)
        try:
            if self._deadline.seconds_left() <= 0:
                self._report(spec, stopped=True, is_late=True, is_clean=True)
                return
            main = _start(spec, request, inherited=[self._kill_switch.descriptor, *self._locks])
        except OSError as problem:
            at_folder = problem.filename == _raw(spec["cwd"])
            self._report(spec, refused=problem.errno, at_folder=at_folder, is_clean=True)
            return
        finally:
            for descriptor in request[1:]:
                if descriptor is not None:
                    os.close(descriptor)
        self._kill_switch.set_group(main.pid)
        watched = self._watch(main.pid)
        kill_group(main.pid)
        code = main.wait()
        self._is_clean = kill_all_children(self._signals.wait, PAUSES_SECONDS)
        self._report(spec, code=code, is_clean=self._is_clean, **watched)

    def _report(self, spec: dict[str, Any], **facts: object) -> None:
        """Report how the command ended. The worker may be gone."""
        _remove(spec["scratch"])
        _send(self._control, facts)

    def _watch(self, main: int) -> dict[str, object]:
        """Return when the main process has ended: whether we stopped it before it ended by itself, whether because
        the deadline had passed, and how much memory it had if that was too much."""
        was_stopped = is_late = False
        memory, memory_max = 0, 0
        sources: list[int | socket.socket | None] = [self._worker, self._control]
        while not has_ended(main):
            look_seconds = MEMORY_SECONDS if memory_max else LOOK_SECONDS
            seconds = math.inf if is_late else min(self._deadline.seconds_left(), look_seconds)
            ready = self._signals.wait_with(*sources, seconds=seconds)
            if has_ended(main):
                continue
            if not is_late and self._deadline.seconds_left() <= 0:
                was_stopped = is_late = True
                kill_group(main)
                sources.clear()
            if memory_max and not memory and (used := resident_bytes()) > memory_max:
                memory = used
                kill_group(main)
            if not (ready and sources):
                continue
            request = b"" if self._worker in ready else self._receive()
            if request.startswith(MEMORY):
                memory_max = int(request.removeprefix(MEMORY))
                continue
            was_stopped = True
            # Anything but `TERM` kills at once: `KILL`, a closed socket, a worker that is gone.
            if request == TERM:
                terminate(main)
            else:
                kill_group(main)
                sources.clear()
        return {"stopped": was_stopped, "is_late": is_late, "memory": memory}

    def _receive(self) -> bytes:
        try:
            return self._control.recv(REQUEST_BYTES_MAX)
        except OSError:
            return b""


def _request(spec: bytes, stdout: int, stderr: int, *others: int) -> _Request:
    """`others` are standard input, if it has one, and a file with a spec that is too long for the message."""
    rest = list(others)
    if not spec:
        spec = _content(rest.pop())
    return _Request(spec, stdout, stderr, rest.pop() if rest else None)


def _content(descriptor: int) -> bytes:
    with os.fdopen(descriptor, "rb") as file:
        return file.read()


def refuse(control: socket.socket, problem: OSError) -> None:
    """Report that a command cannot be started, because no supervisor can."""
    _send(control, {"refused": problem.errno})


def _send(control: socket.socket, facts: dict[str, object]) -> None:
    with suppress(OSError):
        control.sendall(json.dumps(facts).encode())


def _start(
    spec: dict[str, Any], request: _Request, *, inherited: Sequence[int]
) -> "subprocess.Popen[bytes]":
    def start(program: Path | None = None) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(  # noqa: S603 -- to run the job's command is its purpose
            [_raw(word) for word in spec["argv"]],
            executable=program,
            env={_raw(name): _raw(value) for name, value in spec["environment"].items()},
            cwd=_raw(spec["cwd"]),
            stdin=subprocess.DEVNULL if request.stdin is None else request.stdin,
            stdout=request.stdout,
            stderr=request.stderr,
            start_new_session=True,
            pass_fds=inherited,
        )

    try:
        return start()
    except PermissionError as problem:
        # Also raised if one folder of PATH may not be searched, whatever was found in the others.
        if problem.filename == _raw(spec["cwd"]) or "/" in spec["argv"][0]:
            raise
        return start(_found_in_path(spec, problem))


def _found_in_path(spec: dict[str, Any], problem: PermissionError) -> Path:
    """The program in a folder that may be searched. Raises `problem` if it is only there as a file that is not
    executable."""
    places = [Path(folder, spec["argv"][0]) for folder in os.get_exec_path(spec["environment"])]
    for place in places:
        if os.access(place, os.X_OK) and place.is_file():
            return place
    if any(os.access(place, os.F_OK) for place in places):
        raise problem
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _remove(paths: Iterable[str]) -> None:
    for path in paths:
        with suppress(OSError):
            Path(os.fsdecode(_raw(path))).unlink()
