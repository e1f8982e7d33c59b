"""A process that reads documents of strangers: one that takes too long or too much memory harms only that process.

The process is started with the first document, reused for the next ones, and replaced if it ends.
"""

import json
import os
import select
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any, Self, cast

START_SECONDS_MAX = 30.0
CHECK_SECONDS = 0.5
ANSWER_BYTES_MAX = 256 * 1024 * 1024
_PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from tsuzuki.collectors.feeds.documents.worker import main; main(sys.argv[2])"
)


class DocumentProcess:
    """Reads one document at a time, from any thread. `close` it, or use it in a `with`."""

    def __init__(self, *, kind: str) -> None:
        """`kind` is that of most documents: what reads it is loaded when the process starts."""
        self._kind = kind
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process already, so that it is ready when the first document comes."""
        with self._lock:
            self._running()

    def close(self) -> None:
        with self._lock:
            self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def _ask(
        self,
        order: dict[str, Any],
        body: bytes,
        *,
        seconds_max: float,
        while_waiting: Callable[[], None] = lambda: None,
    ) -> dict[str, Any] | None:
        """The answer to an order, or None if the process broke over it. `while_waiting` is called now and then, and may
        raise to give up."""
        with self._lock:
            answer = None
            try:
                answer = self._answer(order, body, seconds_max, while_waiting)
            finally:
                if answer is None or "failed" in answer:
                    self._end()  # what broke a library may have left it broken
        return None if answer is None or "failed" in answer else answer

    def _answer(
        self,
        order: dict[str, Any],
        body: bytes,
        seconds_max: float,
        while_waiting: Callable[[], None],
    ) -> dict[str, Any] | None:
        orders, answers = self._running()
        try:
            orders.write(json.dumps({**order, "length": len(body)}).encode() + b"\n")
            orders.write(body)
            orders.flush()
        except OSError:
            return None
        line = _line(answers.fileno(), seconds_max + START_SECONDS_MAX, while_waiting)
        return json.loads(line) if line.endswith(b"\n") else None

    def _running(self) -> tuple[IO[bytes], IO[bytes]]:
        """The streams of the process, which is started if there is none."""
        if self._process is None or self._process.poll() is not None:
            self._end()
            self._process = subprocess.Popen(  # noqa: S603 -- our own program
                [sys.executable, "-I", "-c", _PROGRAM, json.dumps(sys.path), self._kind],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={"LANG": "C.UTF-8"},
                cwd="/",
            )
        return _streams(self._process)

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        for stream in _streams(process):
            with suppress(OSError):  # what was not sent yet has no reader any more
                stream.close()
        process.wait()


def _line(descriptor: int, seconds_max: float, while_waiting: Callable[[], None]) -> bytes:
    """A line, or less if the process ended or did not answer in time."""
    line = bytearray()
    watch = select.poll()
    watch.register(descriptor, select.POLLIN)
    left = seconds_max
    while not line.endswith(b"\n") and len(line) < ANSWER_BYTES_MAX and left > 0:
        if not watch.poll(CHECK_SECONDS * 1000):
            while_waiting()
            left -= CHECK_SECONDS
            continue
        part = os.read(descriptor, 1_048_576)
        if not part:
            break
        line += part
    return bytes(line)


def _streams(process: "subprocess.Popen[bytes]") -> tuple[IO[bytes], IO[bytes]]:
    return cast("IO[bytes]", process.stdin), cast("IO[bytes]", process.stdout)
