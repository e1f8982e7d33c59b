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
from typing import Any

from . import DESCRIPTORS_MAX, INLINE_BYTES_MAX, START, TERM
from .deadline import SharedDeadline
from .processes import (
    KillSwitch,
    become_subreaper,
    has_ended,
    kill_all_children,
    kill_group,
    resume_when_parent_ends,
    terminate,
)
from .signal_pipe import SignalPipe

PAUSES_SECONDS = [0.05] * 40
"""How long the report waits for leftover processes to die. After that only the supervisor waits for them."""

LOOK_SECONDS = 1.0
"""The longest wait before the deadline is read again: a timeout does not run while the machine is suspended."""


class Supervisor:
    """Runs until the worker has closed the socket, until it is gone (`worker` is its pidfd), or until a command
    has left a process that could not be killed at once: then it reports so, and waits for that process alone."""

    def __init__(
        self, control: socket.socket, *, worker: int | None, deadline: SharedDeadline
    ) -> None:
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
            self._run(*request)
        self._control.close()
        kill_all_children(self._signals.wait, itertools.repeat(1.0))

    def _next_request(self) -> tuple[bytes, int, int] | None:
        """The spec of the next command and its outputs; None if there will be no more."""
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
                stdout, stderr, *files = descriptors
                return _content(files) or message.removeprefix(START), stdout, stderr

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

    def _run(self, request: bytes, stdout: int, stderr: int) -> None:
        """Run one command and report how it ended."""
        spec = json.loads(request)
        try:
            if self._deadline.seconds_left() <= 0:
                self._report(spec, stopped=True, is_late=True, is_clean=True)
                return
            main = _start(spec, stdout, stderr, inherited=[self._kill_switch.descriptor])
        except OSError as problem:
            at_folder = problem.filename == _raw(spec["cwd"])
            self._report(spec, refused=problem.errno, at_folder=at_folder, is_clean=True)
            return
        finally:
            os.close(stdout)
            os.close(stderr)
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

    def _watch(self, main: int) -> dict[str, bool]:
        """Return when the main process has ended: whether we stopped it before it ended by itself, and whether
        because the deadline had passed."""
        was_stopped = is_late = False
        sources: list[int | socket.socket | None] = [self._worker, self._control]
        while not has_ended(main):
            seconds = math.inf if is_late else min(self._deadline.seconds_left(), LOOK_SECONDS)
            ready = self._signals.wait_with(*sources, seconds=seconds)
            if has_ended(main):
                continue
            if not is_late and self._deadline.seconds_left() <= 0:
                was_stopped = is_late = True
                kill_group(main)
                sources.clear()
            if not (ready and sources):
                continue
            was_stopped = True
            # Anything but `TERM` kills at once: `KILL`, a closed socket, a worker that is gone.
            if self._worker not in ready and self._receive() == TERM:
                terminate(main)
            else:
                kill_group(main)
                sources.clear()
        return {"stopped": was_stopped, "is_late": is_late}

    def _receive(self) -> bytes:
        try:
            return self._control.recv(1)
        except OSError:
            return b""


def _content(files: Iterable[int]) -> bytes:
    content = b""
    for descriptor in files:
        with os.fdopen(descriptor, "rb") as file:
            content += file.read()
    return content


def refuse(control: socket.socket, problem: OSError) -> None:
    """Report that a command cannot be started, because no supervisor can."""
    _send(control, {"refused": problem.errno})


def _send(control: socket.socket, facts: dict[str, object]) -> None:
    with suppress(OSError):
        control.sendall(json.dumps(facts).encode())


def _start(
    spec: dict[str, Any], stdout: int, stderr: int, *, inherited: Sequence[int]
) -> "subprocess.Popen[bytes]":
    def start(program: Path | None = None) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(  # noqa: S603 -- to run the job's command is its purpose
            [_raw(word) for word in spec["argv"]],
            executable=program,
            env={_raw(name): _raw(value) for name, value in spec["environment"].items()},
            cwd=_raw(spec["cwd"]),
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
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
