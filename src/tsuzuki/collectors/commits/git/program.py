"""The git program, started so that it can harm nothing and hang no thread.

It never asks for a password, runs no hook, speaks only protocols we allow, and ignores the environment's
GIT_ variables. It leads its own process group: all it has started ends with it, and it ends with us. Its
output comes in pieces as it is written, so a long history takes no more memory than a short one.
"""

import fcntl
import itertools
import os
import select
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from tsuzuki.collectors.commits.git.process_guard import GUARD
from tsuzuki.collectors.kit.git_environment import git_environment
from tsuzuki.engine.run_context import RunStopped
from tsuzuki.model.clock import Clock
from tsuzuki.outward.errors import SourceRefused, SourceUnavailable
from tsuzuki.outward.redaction import redacted

PROTOCOLS = "file:http:https:ssh"
_REACHING = ("fetch", "ls-remote")
"""The commands that speak to another repository. The others may not, whatever its configuration says."""

PIPE_BYTES = 1024 * 1024
"""Size of the output pipe: how far git may run ahead while a page is being stored."""

ANSWER_BYTES_MAX = 16 * 1024 * 1024
STDERR_BYTES_MAX = 4096
LOOK_SECONDS = 0.2
END_SECONDS = 10.0
END_LOOK_SECONDS = 0.0005
PIECES_AT_ONCE = 32
GATHER_SECONDS = 0.02
"""After the first `PIECES_AT_ONCE` reads, wait so long before each: fewer, larger reads of a long output."""

_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.useReplaceRefs=false",
    "credential.interactive=false",
    "gc.autoDetach=false",
    "gc.pruneExpire=never",  # a head that was pushed over must stay comparable
    "protocol.version=2",
)


@dataclass(frozen=True, kw_only=True)
class GitOutput:
    """What a git process wrote, once it had ended."""

    code: int
    output: bytes
    stderr: str


@dataclass(frozen=True, kw_only=True)
class Git:
    """Git as one run uses it. `stopping` is looked at while waiting; then `RunStopped` is raised."""

    clock: Clock
    silence_seconds: float
    stopping: Callable[[], bool] = lambda: False
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)

    def ask(self, folder: Path | None, *arguments: str) -> GitOutput:
        """Run a short command to its end."""
        output = bytearray()
        with self.started(folder, arguments) as process:
            for piece in process.pieces():
                output += piece
                if len(output) > ANSWER_BYTES_MAX:
                    raise SourceRefused("git returned too much output")
            return GitOutput(code=process.end(), output=bytes(output), stderr=process.stderr())

    @contextmanager
    def started(
        self,
        folder: Path | None,
        arguments: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
    ) -> "Iterator[GitProcess]":
        """A command whose output is read while it runs; it is killed on leaving."""
        command = ["git", *(part for one in _SETTINGS for part in ("-c", one)), *arguments]
        with tempfile.TemporaryFile() as stderr:
            protocols = PROTOCOLS if arguments[0] in _REACHING else "none"
            variables = {**self._environment(folder), "GIT_ALLOW_PROTOCOL": protocols}
            variables.update(environment or {})
            process = _spawn(command, folder, variables, stderr)
            running = GitProcess(process, stderr, self)
            try:
                yield running
            finally:
                running.kill()

    def _environment(self, folder: Path | None) -> dict[str, str]:
        ssh = self.environ.get("GIT_SSH_COMMAND", "ssh")
        return {
            **git_environment(self.environ),
            "GIT_ASKPASS": "true",
            # A folder that is no repository is not to be taken for a part of one above it.
            "GIT_CEILING_DIRECTORIES": str(folder.parent) if folder else "/",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_SSH_COMMAND": f"{ssh} -o BatchMode=yes -o ConnectTimeout=30",
            "GIT_TERMINAL_PROMPT": "0",
            "LC_ALL": "C",
            "SSH_ASKPASS_REQUIRE": "never",
            "TZ": "UTC0",
        }


class GitProcess:
    """One running git."""

    def __init__(self, process: "subprocess.Popen[bytes]", stderr: IO[bytes], git: Git) -> None:
        self._process = process
        self._stderr = stderr
        self._git = git

    def pieces(self) -> Iterator[bytes]:
        """Its output as it comes."""
        stream = self._process.stdout
        if stream is None:
            raise ValueError("git was started without a pipe")
        number, never = stream.fileno(), threading.Event()
        for count in itertools.count():
            if count > PIECES_AT_ONCE:
                self._git.clock.wait(never, GATHER_SECONDS)
            self._wait_for_output(number)
            piece = os.read(number, PIPE_BYTES)
            if not piece:
                return
            yield piece

    def _wait_for_output(self, number: int) -> None:
        clock, silence_seconds = self._git.clock, self._git.silence_seconds
        since = clock.monotonic()
        watch = select.poll()
        watch.register(number, select.POLLIN)
        while not watch.poll(LOOK_SECONDS * 1000):
            if self._git.stopping():
                raise RunStopped
            if clock.monotonic() - since > silence_seconds:
                raise SourceUnavailable(
                    f"git produced no output for {silence_seconds:g} s and was stopped",
                    hint="If it needs longer, raise `git_timeout` under `commits:`.",
                )

    def end(self) -> int:
        """Its exit code, once its output has ended."""
        if self._process.returncode is None and not _has_ended(self._process.pid):
            raise SourceUnavailable("git closed its output but did not end")
        return GUARD.end(self._process)

    def stderr(self) -> str:
        """The end of what it wrote to stderr, redacted."""
        self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(self._stderr.tell() - STDERR_BYTES_MAX, 0))
        return redacted(self._stderr.read().decode("utf-8", "replace"))

    def kill(self) -> None:
        """End it with all it has started. Harmless once it has ended."""
        GUARD.end(self._process)
        if self._process.stdout is not None:
            self._process.stdout.close()


def _has_ended(pid: int) -> bool:
    """Whether it ends within `END_SECONDS`. It is not reaped: its id stays its own, for the guard."""
    waited, pause = 0.0, END_LOOK_SECONDS
    with suppress(ChildProcessError):  # where SIGCHLD is ignored, the kernel reaps it
        while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            if waited >= END_SECONDS:
                return False
            select.select([], [], [], pause)
            waited, pause = waited + pause, min(pause * 2, LOOK_SECONDS)
    return True


def _spawn(
    command: Sequence[str], folder: Path | None, environment: Mapping[str, str], errors: IO[bytes]
) -> "subprocess.Popen[bytes]":
    if shutil.which(command[0], path=environment.get("PATH")) is None:
        raise SourceRefused("git is not installed", hint="Install git 2.31 or newer.")
    try:
        process = GUARD.spawn(
            command, folder=folder or Path("/"), environment=environment, stderr=errors
        )
    except FileNotFoundError:
        raise SourceRefused(f"folder {folder} does not exist") from None
    except (NotADirectoryError, PermissionError) as problem:
        raise SourceRefused(f"cannot enter {folder}: {problem.strerror}") from None
    if process.stdout is not None:
        with suppress(OSError):  # a help only: some systems allow less
            fcntl.fcntl(process.stdout.fileno(), fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    return process
