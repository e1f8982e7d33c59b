"""Threads that ask feeds, each one feed after the other, and hand over the answers as they come.

A thread takes the next request by itself: most answers say that nothing is new, and to wait for the thread of the run
after each would take longer than the exchange. After a document it does wait until that is taken, so that no more
documents are held than there are threads.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable
from queue import Empty, SimpleQueue
from typing import Self

from tsuzuki.collectors.feeds.fetching.download import FeedAnswer, NewDocument
from tsuzuki.collectors.feeds.fetching.request import FeedRequest


class FeedThreads:
    """Use it in a `with`: leaving it waits for what is under way, which ends by its own deadline."""

    def __init__(
        self,
        ask: Callable[[FeedRequest], FeedAnswer],
        requests: Iterable[FeedRequest],
        *,
        threads: int,
        name: str,
    ) -> None:
        self._ask = ask
        self._left = deque(requests)
        self._answers: SimpleQueue[tuple[FeedRequest, FeedAnswer] | BaseException] = SimpleQueue()
        self._taken = threading.Semaphore(0)
        self._threads = [
            threading.Thread(target=self._serve, name=f"{name} {number}", daemon=True)
            for number in range(min(threads, len(self._left)))
        ]

    def next(self, seconds: float) -> tuple[FeedRequest, FeedAnswer] | None:
        """An answer, or None if none comes in this time. Raises what a thread did not expect."""
        try:
            found = self._answers.get(timeout=seconds)
        except Empty:
            return None
        if isinstance(found, BaseException):
            raise found
        return found

    def taken(self, answer: FeedAnswer) -> None:
        """An answer is dealt with: its thread may go on."""
        if isinstance(answer, NewDocument):
            self._taken.release()

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._left.clear()
        for _ in self._threads:
            self._taken.release()
        for thread in self._threads:
            thread.join()

    def _serve(self) -> None:
        while True:
            try:
                request = self._left.popleft()
            except IndexError:
                return
            try:
                answer = self._ask(request)
            except BaseException as problem:  # noqa: BLE001 -- raised again in the thread of the run
                self._answers.put(problem)
                return
            is_document = isinstance(answer, NewDocument)
            self._answers.put((request, answer))
            del request, answer  # or a thread that waits keeps the document in memory
            if is_document:
                self._taken.acquire()
