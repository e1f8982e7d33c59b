"""A supervisor: starts one command after the other, watches it, cleans up, and reports how it ended."""

import itertools
import json
import math
import os
import socket
import subprocess
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from . import DESCRIPTORS_MAX, INLINE_BYTES_MAX, START, TERM
from .deadline import Deadline
from .processes import (
    become_subreaper,
    has_children,
    has_ended,
    kill_children,
    kill_group,
    terminate,
)
from .signal_pipe import SignalPipe

PAUSES_SECONDS = [0.05] * 40
"""How long the report waits for leftover processes to die. After that only the supervisor waits for them."""


class Supervisor:
    """Runs until the worker has closed the socket, until it is gone (`worker` is its pidfd), or until a command
    has left a process that could not be killed at once: then it reports so, and waits for that process alone."""

    def __init__(self, control: socket.socket, *, worker: int | None, deadline: Deadline) -> None:
        self._control = control
        self._worker = worker
        self._deadline = deadline
        self._signals = SignalPipe()
        self._is_clean = True

    def run(self) -> None:
        become_subreaper()
        while self._is_clean and (request := self._next_request()):
            self._run(*request)
        self._control.close()
        self._kill_leftovers(itertools.repeat(1.0))

    def _next_request(self) -> tuple[bytes, int, int] | None:
        """The spec of the next command and its outputs; None if there will be no more."""
        while True:
            ready = self._signals.wait_with(self._worker, self._control)
            if self._worker in ready:
                return None
            if self._control not in ready:
                continue
            message, descriptors, _, _ = socket.recv_fds(
                self._control,
                len(START) + INLINE_BYTES_MAX,
                DESCRIPTORS_MAX,
                socket.MSG_CMSG_CLOEXEC,
            )
            if not message:
                return None
            # Without descriptors it is a request to stop the last command, which had ended already.
            if descriptors:
                stdout, stderr, *files = descriptors
                return _content(files) or message.removeprefix(START), stdout, stderr

    def _run(self, request: bytes, stdout: int, stderr: int) -> None:
        """Run one command and report how it ended."""
        spec = json.loads(request)
        try:
            if self._deadline.seconds_left() <= 0:
                self._report(spec, stopped=True, is_late=True, is_clean=True)
                return
            main = _start(spec, stdout, stderr)
        except OSError as problem:
            at_folder = problem.filename == _raw(spec["cwd"])
            self._report(spec, refused=problem.errno, at_folder=at_folder, is_clean=True)
            return
        finally:
            os.close(stdout)
            os.close(stderr)
        watched = self._watch(main.pid)
        kill_group(main.pid)
        code = main.wait()
        self._is_clean = self._kill_leftovers(PAUSES_SECONDS)
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
            seconds = math.inf if is_late else self._deadline.seconds_left()
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

    def _kill_leftovers(self, pauses: Iterable[float]) -> bool:
        """Kill and reap all children, until there are none or the pauses are used up; whether there are none."""
        for pause in pauses:
            if not has_children():
                return True
            kill_children()
            self._signals.wait(pause)
        return not has_children()


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


def _start(spec: dict[str, Any], stdout: int, stderr: int) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(  # noqa: S603 -- to run the job's command is its purpose
        [_raw(word) for word in spec["argv"]],
        env={_raw(name): _raw(value) for name, value in spec["environment"].items()},
        cwd=_raw(spec["cwd"]),
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        start_new_session=True,
    )


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _remove(paths: Iterable[str]) -> None:
    for path in paths:
        with suppress(OSError):
            Path(os.fsdecode(_raw(path))).unlink()
