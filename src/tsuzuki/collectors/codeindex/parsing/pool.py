"""Worker processes that parse files: a file that crashes a parser or never ends harms only itself.

Few files are parsed in this process: starting another takes longer. Results come in any order. If a worker ends or
does not answer in time, the files of its batch are tried one by one in new ones, and the guilty file has failed.
"""

import itertools
import json
import os
import pickle
import queue
import select
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from tsuzuki.collectors.codeindex.extract import EXTRACTOR_VERSION
from tsuzuki.collectors.codeindex.parsing.parse import ParseLimits, parse_file
from tsuzuki.collectors.codeindex.parsing.parsed_file import (
    FileOutcome,
    FileToParse,
    Parsed,
    ParsedFile,
    VanishedFile,
)
from tsuzuki.collectors.codeindex.parsing.worker import LENGTH, send

HERE_FILES_MAX = 40
BATCH_FILES = 24
WAITING_BATCHES_MAX = 8
TICK_SECONDS = 0.2
START_SECONDS_MAX = 30.0
_PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from tsuzuki.collectors.codeindex.parsing.worker import main; main()"
)


def worker_count() -> int:
    """One process per processor that we may use, at most eight: the writer is the limit then."""
    return min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2, 8)


class ParsePool:
    """Parses files of one tree. Use it in a `with`: leaving ends its processes."""

    def __init__(self, root: Path, limits: ParseLimits, *, workers: int | None = None) -> None:
        self._root = os.fspath(root)
        self._limits = limits
        self._worker_count = workers or worker_count()
        self._closing = threading.Event()
        self._done: queue.Queue[list[Parsed] | BaseException | None] = queue.Queue(
            WAITING_BATCHES_MAX
        )
        self._threads: list[threading.Thread] = []
        self._started: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self._closing.set()
        for thread in self._threads:
            while thread.is_alive():
                with suppress(queue.Empty):  # one that waits for room in the queue
                    self._done.get_nowait()
                thread.join(TICK_SECONDS / 10)
        while self._started:
            _end_process(self._started.pop())

    def start_early(self, file_count: int) -> None:
        """Start the processes for so many files now: they load while something else is done."""
        for _ in range(self._count(file_count) if file_count > HERE_FILES_MAX else 0):
            self._started.append(_start_process())

    def _count(self, file_count: int) -> int:
        return min(self._worker_count, -(-file_count // BATCH_FILES))

    def parse(self, files: Sequence[FileToParse]) -> Iterator[list[Parsed]]:
        """What was parsed, in lists. An empty list comes when there is nothing for a moment."""
        if len(files) <= HERE_FILES_MAX and not any(file.has_failed for file in files):
            yield from ([parse_file(self._root, file, self._limits)] for file in files)
            return
        batches = (files[at : at + BATCH_FILES] for at in itertools.count(0, BATCH_FILES))
        shared = _Batches(itertools.takewhile(bool, batches))
        count = self._count(len(files))
        self._threads = [
            threading.Thread(target=self._work, args=(shared,), name="parse", daemon=True)
            for _ in range(count)
        ]
        for thread in self._threads:
            thread.start()
        running = count
        while running:
            try:
                found = self._done.get(timeout=TICK_SECONDS)
            except queue.Empty:
                yield []
                continue
            if isinstance(found, BaseException):
                raise found
            if found is None:
                running -= 1
            else:
                yield found

    def _work(self, batches: "_Batches") -> None:
        """The thread of one worker process."""
        try:
            with _Worker(self._root, self._limits, self._closing, self._started) as worker:
                while not self._closing.is_set() and (batch := batches.next()) is not None:
                    self._put(worker.parse(batch))
            self._put(None)
        except BaseException as problem:  # noqa: BLE001 -- raised again by the thread that waits for us
            self._put(problem)

    def _put(self, found: list[Parsed] | BaseException | None) -> None:
        while not self._closing.is_set():
            with suppress(queue.Full):
                self._done.put(found, timeout=TICK_SECONDS)
                return


class _Batches:
    """An iterator that several threads share."""

    def __init__(self, batches: Iterator[Sequence[FileToParse]]) -> None:
        self._batches = batches
        self._lock = threading.Lock()

    def next(self) -> Sequence[FileToParse] | None:
        with self._lock:
            return next(self._batches, None)


class _Worker:
    """One process, replaced when it ends."""

    def __init__(
        self,
        root: str,
        limits: ParseLimits,
        closing: threading.Event,
        started: list[subprocess.Popen[bytes]],
    ) -> None:
        self._root = root
        self._limits = limits
        self._closing = closing
        self._started = started
        """Processes that no worker has so far. Shared by threads: only `pop` and its `IndexError` are used."""
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self._end()

    def parse(self, batch: Sequence[FileToParse]) -> list[Parsed]:
        answer = self._ask(batch)
        if answer is not None or self._closing.is_set():
            return answer or []
        if len(batch) > 1:
            return [parsed for file in batch for parsed in self.parse([file])]
        return [_crashed(self._root, batch[0])]

    def _ask(self, batch: Sequence[FileToParse]) -> list[Parsed] | None:
        """None if the process ended, or was ended because it did not answer in time."""
        process = self._process or self._start()
        if process.stdin is None or process.stdout is None:
            raise ValueError("a worker has pipes")
        seconds = START_SECONDS_MAX + 2 * self._limits.seconds_max * len(batch)
        try:
            send(process.stdin, list(batch))
            answer = self._read(process.stdout.fileno(), seconds)
        except OSError:
            answer = None
        if answer is None:
            self._end()
        return answer

    def _read(self, descriptor: int, seconds: float) -> list[Parsed] | None:
        received, length = bytearray(), -1
        watch = select.poll()
        watch.register(descriptor, select.POLLIN)
        silent_ticks_left = int(seconds / TICK_SECONDS)
        while length < 0 or len(received) < length + LENGTH.size:
            if not watch.poll(TICK_SECONDS * 1000):
                silent_ticks_left -= 1
                if self._closing.is_set() or silent_ticks_left <= 0:
                    return None
                continue
            part = os.read(descriptor, 1 << 20)
            if not part:
                return None
            received += part
            if length < 0 and len(received) >= LENGTH.size:
                (length,) = LENGTH.unpack_from(received)
        parsed: list[Parsed] = pickle.loads(memoryview(received)[LENGTH.size :])  # noqa: S301 -- from our own child
        return parsed

    def _start(self) -> "subprocess.Popen[bytes]":
        try:
            process = self._started.pop()
        except IndexError:
            process = _start_process()
        self._process = process
        if process.stdin is not None:
            with suppress(OSError):  # it has ended already: the first batch will show it
                send(process.stdin, (self._root, self._limits))
        return process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            _end_process(process)


def _start_process() -> "subprocess.Popen[bytes]":
    return subprocess.Popen(  # noqa: S603 -- our own program
        [sys.executable, "-c", _PROGRAM, json.dumps(sys.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # ^C is for us to see, and to end it
    )


def _end_process(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(OSError):
                stream.close()


def _crashed(root: str, file: FileToParse) -> Parsed:
    """Stored with size and mtime, so that it is not tried again before it changes."""
    try:
        found = os.lstat(f"{root}/{file.path}")
    except OSError:
        return VanishedFile(path=file.path)
    return ParsedFile(
        path=file.path,
        size=found.st_size,
        mtime_ns=found.st_mtime_ns,
        outcome=FileOutcome.FAILED,
        extractor_version=EXTRACTOR_VERSION,
        error="the parser crashed or did not end in time",
    )
