"""`tsuzuki` processes forked from one that has imported everything: the imports take most of the time of a start.

A forked process is like one that was started in all but that: it has a pid, a session, an environment, a folder, files
and signals of its own, and may be killed at any moment.
"""

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from multiprocessing.reduction import DupFd
from pathlib import Path
from pkgutil import resolve_name
from typing import IO, Any

from tsuzuki.cli import main

PRELOADED = [
    "psycopg",
    "pytest",
    "sqlalchemy.dialects.postgresql.psycopg",
    "sqlalchemy.dialects.sqlite.pysqlite",
    "tsuzuki.cli.serve.up",
    "tsuzuki.collectors.books.service",
    "tsuzuki.collectors.commits.collect",
    "tsuzuki.collectors.commits.service",
    "tsuzuki.store.schema.migration_steps",
    "tsuzuki.wiring.application",
    "tsuzuki.wiring.engine",
]

PATCH_VARIABLE = "FORKED_PROGRAM_PATCH"
"""Names a function of the tests, as `module:function`, that is called in the process before the program: to break a
guard there."""

forking = multiprocessing.get_context("forkserver")
forking.set_forkserver_preload(PRELOADED)


class ForkedProgram:
    """One process of the program, with the methods of `Popen` that tests use. `stdout` and `stderr` are open files
    to write to; without them the output is dropped."""

    def __init__(
        self,
        words: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        stdout: IO[Any] | None = None,
        stderr: IO[Any] | None = None,
    ) -> None:
        self.args = ["tsuzuki", *words]
        with Path(os.devnull).open("r+b", buffering=0) as null:
            files = [DupFd((file or null).fileno()) for file in (null, stdout, stderr)]
            start = partial(run_program, files, words, str(cwd), dict(env))
            self._process = forking.Process(target=start)
            self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def poll(self) -> int | None:
        """The exit code, once it has ended; of a signal, its number below zero."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        code = self._process.exitcode
        if code is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def run_program(files: Sequence[Any], words: Sequence[str], cwd: str, env: dict[str, str]) -> None:
    """Run the program in this process as if it had been started with these."""
    for number, file in enumerate(files):
        os.dup2(file.detach(), number)
    os.setsid()
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.path[:0] = filter(None, env.get("PYTHONPATH", "").split(os.pathsep))
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False, buffering=1)
    sys.argv[:] = ["tsuzuki", *words]
    if place := os.environ.pop(PATCH_VARIABLE, None):
        resolve_name(place)()
    main()
