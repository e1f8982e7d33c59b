"""The process of a language server, and messages to and from it, with limits.

Input, output and error stream are served by one loop, so that a server that writes while we write never blocks both.
It runs in a process group of its own, which is killed at the end, with all that it started.
"""

import os
import re
import select
import signal
import subprocess
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tsuzuki.collectors.codeindex.lsp.framing import Frames, Message, ProtocolError, frame
from tsuzuki.collectors.codeindex.lsp.settings import ServerCommand
from tsuzuki.model.clock import Clock

TICK_SECONDS = 0.1
READ_BYTES = 1 << 16
ERROR_BYTES_KEPT = 2_000
_SECRET = re.compile(
    r"^TSUZUKI_|TOKEN|SECRET|PASSW|CREDENTIAL|API_?KEY|(?:DATABASE|REDIS)_URL", re.IGNORECASE
)


@dataclass(frozen=True, kw_only=True)
class LspLimits:
    """What a server may take. Beyond one of them it is ended."""

    start_seconds_max: float = 120.0
    """From its start to its first answer about a file."""

    request_seconds_max: float = 60.0
    """Some servers check a whole file before they answer about the next."""

    message_bytes_max: int = 32 * 2**20
    answer_bytes_max: int = 64 * 2**20
    """Of all that it sends while we wait for one answer."""

    end_seconds_max: float = 2.0
    restarts_max: int = 3
    """In one build; then the files that are left are not asked for."""


class ServerFailed(Exception):
    """The server is of no use any more. The message says what it did."""


class ServerProcess:
    """A running server. `end` it."""

    def __init__(
        self,
        command: ServerCommand,
        *,
        root: Path,
        limits: LspLimits,
        clock: Clock,
        tick: Callable[[], None],
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self._limits = limits
        self._clock = clock
        self._tick = tick
        self._frames = Frames(limits.message_bytes_max)
        self._messages: deque[Message] = deque()
        self._to_write = bytearray()
        self._errors = bytearray()
        self._received_bytes = 0
        self._process = _started(command, root, environ)
        self._poll = select.poll()
        self._input, self._output, self._error = (
            stream.fileno()
            for stream in (self._process.stdin, self._process.stdout, self._process.stderr)
            if stream is not None
        )
        for descriptor in (self._input, self._output, self._error):
            os.set_blocking(descriptor, False)
        self._poll.register(self._output, select.POLLIN)
        self._poll.register(self._error, select.POLLIN)

    def send(self, message: Message) -> None:
        """It is written while we wait for an answer."""
        self._to_write += frame(message)
        self._poll.register(self._input, select.POLLOUT)

    def expect_answer(self) -> None:
        """What is received counts from now on."""
        self._received_bytes = 0

    def receive(self, deadline_seconds: float) -> Message:
        """The next message. Raises `TimeoutError` if there is none by the deadline, and `ServerFailed`."""
        while not self._messages:
            if self._clock.monotonic() >= deadline_seconds:
                raise TimeoutError
            self._tick()
            for descriptor, _events in self._poll.poll(TICK_SECONDS * 1000):
                self._serve(descriptor)
        return self._messages.popleft()

    def flush(self) -> None:
        """Write what can be written at once."""
        if self._to_write:
            self._write()

    def _serve(self, descriptor: int) -> None:
        if descriptor == self._input:
            self._write()
        elif descriptor == self._error:
            self._read_errors()
        else:
            self._read()

    def _write(self) -> None:
        try:
            written = os.write(self._input, self._to_write)
        except BlockingIOError:
            return
        except OSError:  # it closed its input: that it ended is seen at its output
            written = len(self._to_write)
        del self._to_write[:written]
        if not self._to_write:
            self._poll.unregister(self._input)

    def _read_errors(self) -> None:
        part = _read_part(self._error)
        if part == b"":
            self._poll.unregister(self._error)
        self._errors = (self._errors + (part or b""))[-ERROR_BYTES_KEPT:]

    def _read(self) -> None:
        part = _read_part(self._output)
        if part is None:
            return
        if not part:
            raise ServerFailed(f"exited{self._last_words()}")
        self._received_bytes += len(part)
        if self._received_bytes > self._limits.answer_bytes_max:
            raise ServerFailed(
                f"sent more than {self._limits.answer_bytes_max} bytes before one answer"
            )
        try:
            self._messages += self._frames.add(part)
        except ProtocolError as problem:
            raise ServerFailed(f"sent {problem}") from None

    def _last_words(self) -> str:
        """The last line of its error stream, and its exit code if it has one."""
        self._errors += _read_part(self._error) or b""
        lines = self._errors.decode("utf-8", "replace").strip().splitlines()
        words = f": {lines[-1].strip()[:200]}" if lines else ""
        ended = _exit_status(self._process.pid, self._clock)
        return f" with {ended}{words}" if ended else words

    def end(self) -> None:
        """Kill it and all that it started in its group."""
        with suppress(ProcessLookupError, PermissionError):
            # Its id is not free before `wait`, so the group is its own.
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                with suppress(OSError):
                    stream.close()


def _read_part(descriptor: int) -> bytes | None:
    """What can be read at once: nothing at the end of the stream, None if there is nothing yet."""
    try:
        return os.read(descriptor, READ_BYTES)
    except BlockingIOError:
        return None
    except OSError:
        return b""


def server_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """What a server inherits: all but our own settings and what looks like a secret by its name."""
    return {name: value for name, value in environ.items() if not _SECRET.search(name)}


def _started(
    command: ServerCommand, root: Path, environ: Mapping[str, str]
) -> "subprocess.Popen[bytes]":
    program = command.program(environ)
    if program is None:
        is_path = "/" in command.words[0]
        where = "; give its full path" if is_path else " on the PATH"
        raise ServerFailed(f"program {command.words[0]} not found{where}")
    try:
        return subprocess.Popen(  # noqa: S603 -- the user's own command, without a shell
            [program, *command.words[1:]],
            cwd=root,
            env=server_environment(environ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
    except OSError as problem:
        raise ServerFailed(f"{program}: {problem.strerror or problem}") from None


def _exit_status(pid: int, clock: Clock) -> str:
    """How it ended, without reaping it; "" if it has only closed its output."""
    deadline = clock.monotonic() + TICK_SECONDS
    while clock.monotonic() < deadline:
        found = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if found is not None:
            is_exit = found.si_code == os.CLD_EXITED
            return f"{'code' if is_exit else 'signal'} {found.si_status}"
        select.select([], [], [], TICK_SECONDS / 20)
    return ""
