"""Warm children that wait for the next run, and new ones.

A child is replaced after a number of runs, when it has grown, when a run has left a process in it, and when it was not
needed for a while.
"""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

from tsuzuki.engine.executors.command.environment import checked_variables
from tsuzuki.engine.executors.command.spec import CommandSpec
from tsuzuki.engine.executors.command.supervisor_pool import SupervisorPool
from tsuzuki.engine.executors.isolated.child_process import ChildProcess
from tsuzuki.engine.executors.isolated.frames import MARK_BYTES

RUNS_MAX = 1_000
"""A child is replaced after this many runs: what functions leak is bounded by that."""

RESIDENT_BYTES_MAX = 256 * 1024 * 1024
"""A child that has more memory after a run is replaced."""

UNUSED_SECONDS_MAX = 60.0
"""A child that was idle all this time is let go."""

_PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1])['path']; "
    "from tsuzuki.engine.executors.isolated.child.main import main; main()"
)
"""On one line, because lists of processes show it."""


class ChildPool:
    """Used on the event loop alone."""

    def __init__(self, supervisors: SupervisorPool, *, base_folder: Path) -> None:
        self._supervisors = supervisors
        self._base_folder = base_folder
        self._idle: list[ChildProcess] = []
        self._idle_min = 0
        """The smallest number of idle ones since the last check: so many were not needed."""
        self._is_checking = False

    def take(self) -> ChildProcess:
        """An idle child, or a new one. Raises `OSError` or `UsageError` if none can be started."""
        if not self._idle:
            return self.new()
        child = self._idle.pop()
        self._idle_min = min(self._idle_min, len(self._idle))
        return child

    def new(self) -> ChildProcess:
        """A child that has executed nothing yet."""
        mark = os.urandom(MARK_BYTES)
        output, theirs = os.pipe2(os.O_CLOEXEC)
        stdin, requests = os.pipe2(os.O_CLOEXEC)
        try:
            os.set_blocking(output, False)
            os.set_blocking(requests, False)
            supervisor = self._supervisors.hand_over(self._spec(mark), [theirs, theirs, stdin])
        except BaseException:
            os.close(output)
            os.close(requests)
            raise
        finally:
            os.close(theirs)
            os.close(stdin)
        child = ChildProcess(
            supervisor=supervisor,
            output=output,
            requests=requests,
            mark=mark,
            on_end=self._on_end,
        )
        child.attach()
        return child

    def put_back(self, child: ChildProcess, *, resident_bytes: int) -> None:
        """Its run has ended, and has left no process."""
        if child.runs >= RUNS_MAX or resident_bytes > RESIDENT_BYTES_MAX:
            child.kill()
            return
        self._idle.append(child)
        if not self._is_checking:
            self._check_later()

    def close(self) -> None:
        """End the idle ones."""
        for child in self._idle:
            child.close()
        self._idle.clear()

    def _on_end(self, child: ChildProcess, is_clean: bool) -> None:
        """`is_clean`: its supervisor may have another command."""
        if child in self._idle:
            self._idle.remove(child)
            self._idle_min = min(self._idle_min, len(self._idle))
        if is_clean:
            self._supervisors.release(child.supervisor)
        else:
            self._supervisors.discard(child.supervisor)

    def _spec(self, mark: bytes) -> CommandSpec:
        """Its environment is the worker's: a function finds there what it would find in a thread."""
        settings = {"path": sys.path, "mark": mark.hex(), "base_folder": str(self._base_folder)}
        return CommandSpec(
            argv=[sys.executable, *_interpreter_flags(), "-c", _PROGRAM, json.dumps(settings)],
            environment=checked_variables(dict(os.environ)),
            cwd=str(Path.cwd()),
        )

    def _check_later(self) -> None:
        self._is_checking = True
        asyncio.get_running_loop().call_later(UNUSED_SECONDS_MAX, self._let_go_unused)

    def _let_go_unused(self) -> None:
        for child in self._idle[: self._idle_min]:
            child.kill()
        del self._idle[: self._idle_min]
        self._idle_min = len(self._idle)
        self._is_checking = False
        if self._idle_min:
            self._check_later()


def _interpreter_flags() -> list[str]:
    """The flags that this interpreter was started with, as `multiprocessing` passes them on."""
    flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # noqa: SLF001 -- multiprocessing uses it too
    return flags
