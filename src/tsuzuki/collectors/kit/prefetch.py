"""One question under way while its asker does something else, such as waiting for the disk."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Generic, Self, TypeVar

Answer = TypeVar("Answer")


class Prefetch(Generic[Answer]):
    """Carries questions, one at a time, in a thread that starts with the first of them.

    Leaving its `with` waits for the question that is still under way, whose answer nobody wants any
    more: only then may be closed what it is asked with. The thread is daemonic, like the one of a
    handler: it never keeps a process alive.
    """

    def __init__(self, *, name: str) -> None:
        self._name = name
        self._errands: SimpleQueue[tuple[Callable[[], Answer], Future[Answer]] | None]
        self._errands = SimpleQueue()
        self._thread: threading.Thread | None = None

    def send(self, question: Callable[[], Answer]) -> Future[Answer]:
        """Ask soon, and answer at once with where its answer, or what it raises, will be."""
        if self._thread is None:
            thread = threading.Thread(target=self._serve, name=self._name, daemon=True)
            thread.start()
            self._thread = thread
        future: Future[Answer] = Future()
        self._errands.put((question, future))
        return future

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        if self._thread is not None:
            self._errands.put(None)
            self._thread.join()

    def _serve(self) -> None:
        while (errand := self._errands.get()) is not None:
            question, future = errand
            try:
                future.set_result(question())
            except BaseException as problem:  # noqa: BLE001 -- raised again where the answer is read
                future.set_exception(problem)
            del errand, question, future  # or a thread that waits keeps the last page in memory
