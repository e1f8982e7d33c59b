"""The supervisor of one command: starts it, watches it, cleans up, and reports how it ended."""

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

from . import TERM
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


def supervise(
    control_fd: int,
    stdout: int,
    stderr: int,
    document: int,
    *,
    worker: int | None,
    deadline: Deadline,
) -> None:
    """Run one command and report how it ended; return when no process of it is left. The descriptor
    `document` holds its spec, `worker` is a pidfd."""
    become_subreaper()
    signals = SignalPipe()
    control = socket.socket(fileno=control_fd)
    with os.fdopen(document, "rb") as file:
        spec = json.loads(file.read())
    try:
        if deadline.seconds_left() <= 0:
            _remove(spec["scratch"])
            report(control, stopped=True, is_late=True)
            return
        main = _start(spec, stdout, stderr)
    except OSError as problem:
        at_folder = problem.filename == _raw(spec["cwd"])
        _remove(spec["scratch"])
        report(control, refused=problem.errno, at_folder=at_folder)
        return
    finally:
        os.close(stdout)
        os.close(stderr)
    watched = _watch(main.pid, control, worker, signals, deadline)
    kill_group(main.pid)
    code = main.wait()
    _kill_leftovers(signals, PAUSES_SECONDS)
    _remove(spec["scratch"])
    report(control, code=code, **watched)
    _kill_leftovers(signals, itertools.repeat(1.0))


def report(control: socket.socket, **facts: object) -> None:
    """Report how the command ended, and close the socket. The worker may be gone."""
    with suppress(OSError), control:
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


def _watch(
    main: int,
    control: socket.socket,
    worker: int | None,
    signals: SignalPipe,
    deadline: Deadline,
) -> dict[str, bool]:
    """Return when the main process has ended: whether we stopped it before it ended by itself, and whether
    because the deadline had passed."""
    was_stopped = is_late = False
    sources: list[int | socket.socket | None] = [worker, control]
    while not has_ended(main):
        ready = signals.wait_with(
            *sources, seconds=math.inf if is_late else deadline.seconds_left()
        )
        if has_ended(main):
            continue
        if not is_late and deadline.seconds_left() <= 0:
            was_stopped = is_late = True
            kill_group(main)
            sources.clear()
        if not (ready and sources):
            continue
        was_stopped = True
        # Anything but `TERM` kills at once: `KILL`, a closed socket, a worker that is gone.
        if worker not in ready and _receive(control) == TERM:
            terminate(main)
        else:
            kill_group(main)
            sources.clear()
    return {"stopped": was_stopped, "is_late": is_late}


def _kill_leftovers(signals: SignalPipe, pauses: Iterable[float]) -> None:
    """Kill and reap all children, until there are none or the pauses are used up."""
    for pause in pauses:
        if not has_children():
            return
        kill_children()
        signals.wait(pause)


def _receive(control: socket.socket) -> bytes:
    try:
        return control.recv(1)
    except OSError:
        return b""


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _remove(paths: Iterable[str]) -> None:
    for path in paths:
        with suppress(OSError):
            Path(os.fsdecode(_raw(path))).unlink()
