"""Prefetch: one request under way in a thread, while its caller does something else, such as a commit."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Generic, Self, TypeVar

Fetched = TypeVar("Fetched")


class Prefetch(Generic[Fetched]):
    """Sends requests, one at a time, in a thread that starts with the first of them.

    Leaving its `with` waits for the request that is still under way and drops its result: only then may
    the client be closed. The thread is daemonic, like the one of a handler: it never keeps a process
    alive.
    """

    def __init__(self, *, name: str) -> None:
        self._name = name
        self._requests: SimpleQueue[tuple[Callable[[], Fetched], Future[Fetched]] | None]
        self._requests = SimpleQueue()
        self._thread: threading.Thread | None = None

    def send(self, request: Callable[[], Fetched]) -> Future[Fetched]:
        """Send a request soon; what it returns or raises will be in the future."""
        if self._thread is None:
            thread = threading.Thread(target=self._serve, name=self._name, daemon=True)
            thread.start()
            self._thread = thread
        future: Future[Fetched] = Future()
        self._requests.put((request, future))
        return future

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        if self._thread is not None:
            self._requests.put(None)
            self._thread.join()

    def _serve(self) -> None:
        while (queued := self._requests.get()) is not None:
            request, future = queued
            try:
                future.set_result(request())
            except BaseException as problem:  # noqa: BLE001 -- raised again where the result is read
                future.set_exception(problem)
            del queued, request, future  # or a thread that waits keeps the last page in memory
