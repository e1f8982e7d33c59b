"""Child processes that end with ours, even if ours is killed.

One small shell process per process of ours reads the ids of process groups from a pipe; when the pipe ends,
because we did, it kills every group that is still named. A child waits before its program until its group
is named there, so there is no moment at which it could be left behind. The id of a group is free for others
once its leader is reaped, so a group is named no longer before that: only `end` may wait for a child.
"""

import atexit
import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

_SHELL = "/bin/sh"
_WATCH = """
trap '' HUP INT TERM
groups=' '
while read -r sign group; do
    case $sign in
        +) groups="$groups$group " ;;
        -) case $groups in *" $group "*)
            groups="${groups%%" $group "*} ${groups#*" $group "}" ;;
        esac ;;
    esac
done
for group in $groups; do kill -s KILL -- "-$group"; done
"""
_WAIT = 'read -r named && exec "$@" </dev/null'


class ProcessGuard:
    """The watching process of this process, started with the first child."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watcher: subprocess.Popen[bytes] | None = None
        self._started_in = 0

    def spawn(
        self,
        command: Sequence[str],
        *,
        folder: Path,
        environment: Mapping[str, str],
        stderr: IO[bytes],
    ) -> "subprocess.Popen[bytes]":
        """Start a program that leads its own process group. `end` it, and wait for it no other way."""
        process = subprocess.Popen(  # noqa: S603 -- the words of the command are arguments of a fixed script
            [_SHELL, "-c", _WAIT, _SHELL, *command],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            bufsize=0,
            start_new_session=True,
        )
        self._tell("+", process.pid)
        if process.stdin is not None:
            with suppress(BrokenPipeError):
                process.stdin.write(b"named\n")
            process.stdin.close()
        return process

    def end(self, process: "subprocess.Popen[bytes]") -> int:
        """Kill its group, reap it, and give its exit code. Only the code if it was ended before."""
        if process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            self._tell("-", process.pid)
        return process.wait()

    def _tell(self, sign: str, group: int) -> None:
        line = f"{sign} {group}\n".encode()
        with self._lock:
            if self._watcher is not None and self._started_in == os.getpid():
                with suppress(BrokenPipeError):
                    self._write(line)
                    return
            if sign == "+":
                self._start()
                self._write(line)

    def _write(self, line: bytes) -> None:
        if self._watcher is None or self._watcher.stdin is None:
            raise BrokenPipeError
        self._watcher.stdin.write(line)

    def _start(self) -> None:
        self._started_in = os.getpid()
        self._watcher = subprocess.Popen(  # noqa: S603 -- a fixed script
            [_SHELL, "-c", _WATCH],
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,
        )
        atexit.register(_end, self._watcher)


def _end(watcher: "subprocess.Popen[bytes]") -> None:
    if watcher.stdin is not None:
        watcher.stdin.close()
    watcher.wait()


GUARD = ProcessGuard()
