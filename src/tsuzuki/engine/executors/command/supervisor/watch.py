"""The supervisor of one command, from its order to its report."""

import itertools
import json
import os
import socket
import subprocess
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from . import TERM
from .processes import (
    adopt_orphans,
    ask_to_end,
    has_children,
    has_ended,
    kill_children,
    kill_group,
)
from .signal_pipe import SignalPipe

PAUSES_SECONDS = [0.05] * 40
"""How long a run waits for what it left behind to die. After that only its supervisor does."""


def supervise(control: int, stdout: int, stderr: int, document: int, *, worker: int | None) -> None:
    """Carry out one order and report how it ended; return when nothing of it is left."""
    adopt_orphans()
    signals = SignalPipe()
    line = socket.socket(fileno=control)
    with os.fdopen(document, "rb") as file:
        order = json.loads(file.read())
    try:
        main = _start(order, stdout, stderr)
    except OSError as problem:
        at_folder = problem.filename == _raw(order["cwd"])
        _remove(order["scratch"])
        report(line, refused=problem.errno, at_folder=at_folder)
        return
    finally:
        os.close(stdout)
        os.close(stderr)
    stopped = _watch(main.pid, line, worker, signals)
    kill_group(main.pid)
    code = main.wait()
    _clear(signals, PAUSES_SECONDS)
    _remove(order["scratch"])
    report(line, code=code, stopped=stopped)
    _clear(signals, itertools.repeat(1.0))


def report(line: socket.socket, **facts: object) -> None:
    """Say how it ended and hang up. Nobody may be listening any more."""
    with suppress(OSError), line:
        line.sendall(json.dumps(facts).encode())


def _start(order: dict[str, Any], stdout: int, stderr: int) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(  # noqa: S603 -- the very thing that we are for
        [_raw(word) for word in order["argv"]],
        env={_raw(name): _raw(value) for name, value in order["environment"].items()},
        cwd=_raw(order["cwd"]),
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        start_new_session=True,
    )


def _watch(main: int, line: socket.socket, worker: int | None, signals: SignalPipe) -> bool:
    """Return when the main process has ended; true if it was told to before it had."""
    is_told = False
    sources: list[int | socket.socket | None] = [worker, line]
    while not has_ended(main):
        ready = signals.wait_with(*sources)
        if not ready or has_ended(main):
            continue
        is_told = True
        # Whatever is not a polite word, a lost worker included, is the last word.
        if worker not in ready and _heard(line) == TERM:
            ask_to_end(main)
        else:
            kill_group(main)
            sources.clear()
    return is_told


def _clear(signals: SignalPipe, pauses: Iterable[float]) -> None:
    """Kill and reap what is left, until nothing is or the pauses are used up."""
    for pause in pauses:
        if not has_children():
            return
        kill_children()
        signals.wait(pause)


def _heard(line: socket.socket) -> bytes:
    try:
        return line.recv(1)
    except OSError:
        return b""


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _remove(paths: Iterable[str]) -> None:
    for path in paths:
        with suppress(OSError):
            Path(os.fsdecode(_raw(path))).unlink()
