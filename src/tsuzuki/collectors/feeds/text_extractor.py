"""Extraction of text in a process of its own: a document that takes too long or too much memory harms only that.

The process is started with the first document, reused for the next ones, and replaced if it ends.
"""

import json
import os
import select
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import IO, Any, Self, cast

from tsuzuki.collectors.feeds.entry import Attachment
from tsuzuki.collectors.feeds.text_cleaning import (
    PAGE_CHARACTERS_MAX,
    decoded,
    normalised,
    stripped_markup,
)
from tsuzuki.collectors.feeds.text_worker import SECONDS_MAX

START_SECONDS_MAX = 30.0
ANSWER_BYTES_MAX = 8 * 1024 * 1024
STRIPPED_BYTES_MAX = 1_000_000
_PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from tsuzuki.collectors.feeds.text_worker import main; main()"
)


class DocumentKind(StrEnum):
    HTML = "html"
    PDF = "pdf"


@dataclass(frozen=True, kw_only=True)
class ExtractedText:
    """What was found in a document. `notes` say what was not."""

    text: str
    title: str | None = None
    links: tuple[Attachment, ...] = ()
    notes: tuple[str, ...] = ()


class TextExtractor:
    """Extracts text, one document at a time, from any thread. `close` it, or use it in a `with`."""

    def __init__(self, *, seconds_max: float = SECONDS_MAX) -> None:
        self._seconds_max = seconds_max
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process already, so that it is ready when the first document comes."""
        with self._lock:
            self._running()

    def extract(
        self, body: bytes, *, kind: DocumentKind, url: str, charset: str | None = None
    ) -> ExtractedText:
        """The text of a document. One that cannot be read has an empty text and a note."""
        order = {
            "kind": kind,
            "url": url,
            "charset": charset,
            "seconds": self._seconds_max,
            "length": len(body),
        }
        with self._lock:
            answer = self._ask(json.dumps(order).encode() + b"\n", body)
            if answer is None or "failed" in answer:
                self._end()  # what broke a library may have left it broken
        if answer is not None and "failed" not in answer:
            return _extracted(answer)
        if kind is DocumentKind.HTML:
            return _stripped(body, charset)
        return ExtractedText(text="", notes=("the PDF took too much time or memory to read",))

    def close(self) -> None:
        with self._lock:
            self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def _ask(self, order: bytes, body: bytes) -> dict[str, Any] | None:
        """The answer of the process, or None if it ended instead."""
        orders, answers = self._running()
        try:
            orders.write(order)
            orders.write(body)
            orders.flush()
        except OSError:
            return None
        line = self._line(answers.fileno())
        return json.loads(line) if line.endswith(b"\n") else None

    def _line(self, descriptor: int) -> bytes:
        """A line, or less if the process ended or did not answer in time."""
        line = bytearray()
        watch = select.poll()
        watch.register(descriptor, select.POLLIN)
        while not line.endswith(b"\n") and len(line) < ANSWER_BYTES_MAX:
            if not watch.poll((self._seconds_max + START_SECONDS_MAX) * 1000):
                break
            part = os.read(descriptor, 65_536)
            if not part:
                break
            line += part
        return bytes(line)

    def _running(self) -> tuple[IO[bytes], IO[bytes]]:
        """The streams of the process, which is started if there is none."""
        if self._process is None or self._process.poll() is not None:
            self._end()
            self._process = subprocess.Popen(  # noqa: S603 -- our own program
                [sys.executable, "-I", "-c", _PROGRAM, json.dumps(sys.path)],
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


def _streams(process: "subprocess.Popen[bytes]") -> tuple[IO[bytes], IO[bytes]]:
    return cast("IO[bytes]", process.stdin), cast("IO[bytes]", process.stdout)


def _extracted(answer: dict[str, Any]) -> ExtractedText:
    return ExtractedText(
        text=str(answer["text"]),
        title=answer["title"],
        links=tuple(
            Attachment(url=link["url"], media_type="application/pdf", title=link["title"] or None)
            for link in answer.get("links", ())
        ),
        notes=tuple(answer["notes"]),
    )


def _stripped(body: bytes, charset: str | None) -> ExtractedText:
    """The text of a page that the library could not read: everything that is no tag."""
    text = normalised(stripped_markup(decoded(body[:STRIPPED_BYTES_MAX], charset)))
    return ExtractedText(
        text=text[:PAGE_CHARACTERS_MAX],
        notes=("the page could not be analysed; its tags were only taken away",),
    )
