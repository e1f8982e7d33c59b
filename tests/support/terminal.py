"""A program at a terminal: its output is awaited piece by piece, and lines are typed."""

import fcntl
import os
import select
import subprocess
import termios
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from support.workspace import PROGRAM, process_environment

TIMEOUT_SECONDS = 60.0


class Terminal:
    """A terminal with the program of `process` on its other side."""

    def __init__(self, process: "subprocess.Popen[bytes]", descriptor: int) -> None:
        self.process = process
        self.shown = ""
        self._descriptor = descriptor
        self._seen = 0

    def expect(self, text: str) -> None:
        """Wait until the terminal shows `text` after the last expected output."""
        while (found := self.shown.find(text, self._seen)) < 0:
            assert self._read(), f"{text!r} was never shown: {self.shown}"
        self._seen = found + len(text)

    def type(self, line: str) -> None:
        os.write(self._descriptor, f"{line}\n".encode())

    def answer(self, question: str, line: str) -> None:
        self.expect(question)
        self.type(line)

    def end(self) -> int:
        """The exit code, when all of its output is read."""
        while self._read():
            pass
        return self.process.wait(TIMEOUT_SECONDS)

    def _read(self) -> bool:
        ready, _, _ = select.select([self._descriptor], [], [], TIMEOUT_SECONDS)
        assert ready, f"it shows nothing more: {self.shown}"
        try:
            piece = os.read(self._descriptor, 65536)
        except OSError:  # how Linux says that the other side of a terminal is closed
            return False
        self.shown += piece.decode("utf-8", errors="replace").replace("\r\n", "\n")
        return bool(piece)


def _take_terminal() -> None:
    """Make stdin the controlling terminal of the new session, so that ^C becomes a signal."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@contextmanager
def at_terminal(words: Sequence[str], folder: Path, **environ: str) -> Iterator[Terminal]:
    """`tsuzuki` with these words; ended at the end of the block."""
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        [PROGRAM, *words],
        cwd=folder,
        env=process_environment({"NO_COLOR": "1", "TERM": "dumb", **environ}),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=_take_terminal,  # noqa: PLW1509 -- one system call, and ^C needs it
    )
    os.close(theirs)
    try:
        yield Terminal(process, ours)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
