"""The process that reads documents of strangers, with little memory and little time: feeds, pages and PDFs.

It reads orders from its standard input: a line of JSON, then the document. It answers each by a line of JSON. An
order that takes too long, or too much processor time, ends the process, by a timer of the kernel's; so does the end of
its input, when the process that started it is gone. It has no secrets: its environment is empty.
"""

import json
import os
import resource
import signal
import sys
from collections.abc import Callable
from typing import Any

MEMORY_BYTES_MAX = 1024**3
SECONDS_MAX = 30.0
PDF_SHARE = 0.7
"""After this share of the time no further page of a PDF is read, and what was read is kept."""

HTML, FEED = "html", "feed"
Reader = Callable[[dict[str, Any], bytes], dict[str, Any]]


def main(first_kind: str) -> None:
    _set_limits()
    orders, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what a library prints is no answer
    _reader(first_kind)  # loaded while the first document is still on its way
    while line := orders.readline():
        order = json.loads(line)
        body = orders.read(order["length"])
        if len(body) < order["length"]:
            return
        read = _reader(order["kind"])
        timer, seconds = _timer(order)
        signal.setitimer(timer, seconds)
        answer = _answer(read, order, body)
        signal.setitimer(timer, 0)
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()


def _timer(order: dict[str, Any]) -> tuple[int, float]:
    """By the clock, or by the processor time of this process: its signal ends the process."""
    if "processor_seconds" in order:
        return signal.ITIMER_PROF, order["processor_seconds"]
    return signal.ITIMER_REAL, order["seconds"]


def _reader(kind: str) -> Reader:
    """What reads documents of a kind. It is loaded after the limits are set and before the time runs."""
    if kind == HTML:
        from tsuzuki.collectors.feeds.documents.page_text import html_text  # noqa: PLC0415 -- see above

        return lambda order, body: html_text(body, charset=order["charset"], url=order["url"])
    if kind == FEED:
        import tsuzuki.collectors.feeds.entries.parse  # noqa: F401, PLC0415 -- see above
        from tsuzuki.collectors.feeds.entries.feed_parser import answer_of  # noqa: PLC0415 -- see above

        return answer_of
    from tsuzuki.collectors.feeds.documents.pdf_text import pdf_text  # noqa: PLC0415 -- see above

    return lambda order, body: pdf_text(body, seconds_max=order["seconds"] * PDF_SHARE)


def _answer(read: Reader, order: dict[str, Any], body: bytes) -> dict[str, Any]:
    try:
        return read(order, body)
    except Exception as problem:  # noqa: BLE001 -- the document may break the library in any way
        return {"failed": type(problem).__name__}


def _set_limits() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one
    for limit, value in (
        (resource.RLIMIT_AS, MEMORY_BYTES_MAX),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
    ):
        _, hard = resource.getrlimit(limit)
        most = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(limit, (most, most))
