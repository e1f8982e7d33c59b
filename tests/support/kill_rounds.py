"""Kill a worker and its sibling processes at random moments, and check what is left behind.

A program of its own, because it forks its workers. Prints each process that was left, and which kills had left it.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import NoReturn

import psutil

from support.executions import a_task
from support.supervised_commands import supervisors
from tsuzuki.engine.executors.command.executor import CommandExecutor
from tsuzuki.model.clock import SystemClock

MARK = "KILL_ROUND"
WAIT_SECONDS_MAX = 5.0
"""Ends a round that left a process; says nothing about speed."""

DESCENDANTS = (
    "sh -c 'sleep 300 & sleep 300' & setsid sh -c 'sleep 300 & wait' & (setsid sleep 300 &); wait"
)
"""In the command's group, in a session of their own, and without a parent."""

Victims = list[psutil.Process]


def _beside(worker: int) -> tuple[Victims, Victims]:
    """The server and its supervisors, without what they have forked and is not the command yet."""
    server = _children(worker)
    return server, [child for process in server for child in _children(process.pid)]


def _children(parent: int) -> Victims:
    beside = {process.pid for process in supervisors(below=parent)}
    return [child for child in psutil.Process(parent).children() if child.pid in beside]


def _worker(worker: int) -> Victims:
    return [psutil.Process(worker)]


def _supervisors_first(worker: int) -> Victims:
    return _beside(worker)[1] + _worker(worker)


def _supervisors_last(worker: int) -> Victims:
    return _worker(worker) + _beside(worker)[1]


def _server_first(worker: int) -> Victims:
    return _beside(worker)[0] + _worker(worker)


def _server_last(worker: int) -> Victims:
    return _worker(worker) + _beside(worker)[0]


def _stopped(worker: int) -> Victims:
    """The worker, after it, its server and its supervisors were stopped; not before there is a supervisor."""
    while not _beside(worker)[1]:
        threading.Event().wait(0.002)
    server, others = _beside(worker)
    for process in (*_worker(worker), *server, *others):
        process.suspend()
    return _worker(worker)


KILLS: dict[str, Callable[[int], Victims]] = {
    "worker": _worker,
    "supervisors, worker": _supervisors_first,
    "worker, supervisors": _supervisors_last,
    "server, worker": _server_first,
    "worker, server": _server_last,
    "worker while all are stopped": _stopped,
}


class _NoRunIO:
    def log(self, *_: object) -> None:
        pass

    def has_space(self) -> bool:
        return True


def _work() -> NoReturn:
    """Run three commands at a time, some short, so that one is always being started."""
    executor = CommandExecutor(
        expand=lambda text, _: text, base_folder=Path("/"), kill_grace_seconds=lambda: 60.0
    )
    free = threading.Semaphore(3)
    for number in range(1, 1_000_000):
        free.acquire()
        options = {"argv": ["sleep", "0.01"] if number % 3 else ["sh", "-c", DESCENDANTS]}
        task = a_task("command", options, run_id=number)
        executor.start(task, _NoRunIO(), lambda *_: free.release())  # type: ignore[arg-type]
    os._exit(0)


def _left(mark: str) -> list[psutil.Process]:
    """The processes with this mark in their environment, ours excepted."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            environment = Path(f"/proc/{process.pid}/environ").read_bytes()
            if f"{MARK}={mark}".encode() in environment.split(b"\0"):
                found.append(process)
    return found


def _killed(name: str, random: Random) -> None:
    worker = os.fork()
    if worker == 0:
        _work()
    threading.Event().wait(random.choice([0.1, 0.4, 0.8]) * random.random())
    for victim in KILLS[name](worker):
        with suppress(psutil.NoSuchProcess):
            victim.kill()
    os.waitpid(worker, 0)


def _round(number: int, name: str, random: Random) -> list[str]:
    mark = os.environ[MARK] = f"{os.getpid()}-{number}"
    _killed(name, random)
    clock, pause = SystemClock(), threading.Event()
    deadline = clock.monotonic() + WAIT_SECONDS_MAX
    while left := _left(mark):
        if clock.monotonic() > deadline:
            break
        pause.wait(0.02)
    found = []
    for process in left:
        with suppress(psutil.Error):
            found.append(
                f"{name}: {process.cmdline()} below {process.parent()}, {process.status()}"
            )
    for process in left:
        with suppress(psutil.Error):
            process.send_signal(signal.SIGKILL)
    return found


def main() -> None:
    rounds, seed = map(int, sys.argv[1:3])
    names = sys.argv[3:] or list(KILLS)
    random = Random(seed)
    for number in range(rounds):
        for line in _round(number, names[number % len(names)], random):
            print(line, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
