"""Hashes of the files of a tree, made in threads while something else is done: reading and hashing let go of the
interpreter."""

import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

from tsuzuki.collectors.codeindex.parsing.parse import HashedFile, ParseLimits, hash_file

THREADS = 2
TICK_SECONDS = 0.2


class FileHashes:
    """Use it in a `with`: leaving ends its threads."""

    def __init__(self, root: Path, paths: Sequence[str], limits: ParseLimits) -> None:
        self._root = os.fspath(root)
        self._limits = limits
        self._hashed: dict[str, HashedFile] = {}
        self._closing = threading.Event()
        self._threads = [
            threading.Thread(target=self._work, args=(paths[number::THREADS],), daemon=True)
            for number in range(THREADS)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._closing.set()
        for thread in self._threads:
            thread.join()

    def wait(self, tick: Callable[[], None]) -> dict[str, HashedFile]:
        """All of them by path, without files that cannot be read. `tick` is called now and then, and may raise."""
        for thread in self._threads:
            while thread.is_alive():
                thread.join(TICK_SECONDS)
                tick()
        return self._hashed

    def _work(self, paths: Sequence[str]) -> None:
        for path in paths:
            if self._closing.is_set():
                return
            hashed = hash_file(self._root, path, self._limits)
            if hashed is not None:
                self._hashed[path] = hashed
