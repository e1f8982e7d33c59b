"""A circuit breaker: calls to a service that may be down, with a deadline, in a thread of their own.

A caller waits `CALL_TIMEOUT_SECONDS` at most, wherever the call is stuck: a name lookup, a handshake, a paused
server. After a failure the circuit is open: nothing is called but a probe now and then, for which no caller
waits; once a probe succeeds it closes. So an outage costs one caller one timeout and the others nothing. It is
logged once when it starts and once when it ends.
"""

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tsuzuki.engine.log import log
from tsuzuki.model.clock import Clock

T = TypeVar("T")

CALL_TIMEOUT_SECONDS = 0.25
PROBE_INTERVAL_SECONDS = 1.0
PROBE = "probe"


@dataclass(frozen=True, kw_only=True, eq=False)
class _Call:
    function: Callable[[], Any]
    queued_at: float
    unconditional: bool = False
    """Made even while the circuit is open, and however late."""
    answer: "Future[Any]" = field(default_factory=Future)


class CircuitBreaker:
    """Makes calls one after another, in the order in which they came. Safe to use from any thread."""

    def __init__(self, *, service: str, probe: Callable[[], object], clock: Clock) -> None:
        self._service = service
        self._probe = probe
        self._clock = clock
        self._changed = threading.Condition()
        self._queue: dict[Hashable, _Call] = {}
        self._thread: threading.Thread | None = None
        self._open_since: float | None = None
        self._probe_at = 0.0
        self._is_shut_down = False

    @property
    def is_open(self) -> bool:
        """Whether the service is taken for down."""
        return self._open_since is not None

    def post(self, topic: Hashable, function: Callable[[], object]) -> None:
        """Call it soon, or not at all; do not wait. It replaces a queued call on the same topic, so that
        calls which come faster than they can be made do not pile up."""
        with self._changed:
            if self._allows_calls():
                self._put(function, topic=topic)

    def call(self, function: Callable[[], T]) -> T | None:
        """Its answer, or None if there is none in time."""
        with self._changed:
            if not self._allows_calls():
                return None
            answer: Future[T | None] = self._put(function).answer
        try:
            return answer.result(CALL_TIMEOUT_SECONDS)
        except TimeoutError:
            answer.cancel()
            self.record_failure(TimeoutError(f"no response within {CALL_TIMEOUT_SECONDS:g} s"))
            return None

    def allows_calls(self) -> bool:
        """Whether the circuit is closed. If not, a probe is made when it is time."""
        with self._changed:
            return self._allows_calls()

    def record_failure(self, problem: Exception) -> None:
        """Open the circuit."""
        now = self._clock.monotonic()
        with self._changed:
            if self.is_open:
                return
            self._open_since, self._probe_at = now, now + PROBE_INTERVAL_SECONDS
            is_worth_logging = not self._is_shut_down
        if is_worth_logging:
            log.warning(
                "service unreachable, continuing without it",
                service=self._service,
                error=str(problem) or repr(problem),
            )

    def shut_down(self, last: Callable[[], object]) -> None:
        """Make the queued calls, then one last call, and nothing after it."""
        with self._changed:
            if self._is_shut_down:
                return
            answer = self._put(last, unconditional=True).answer
            self._is_shut_down = True
        with suppress(TimeoutError):
            answer.result(CALL_TIMEOUT_SECONDS)

    # --- with the lock held ---------------------------------------------------------------------

    def _allows_calls(self) -> bool:
        if self._is_shut_down:
            return False
        if not self.is_open:
            return True
        now = self._clock.monotonic()
        if now >= self._probe_at:
            self._probe_at = now + PROBE_INTERVAL_SECONDS
            self._put(self._try_to_close, topic=PROBE, unconditional=True)
        return False

    def _put(
        self,
        function: Callable[[], object],
        *,
        topic: Hashable = None,
        unconditional: bool = False,
    ) -> _Call:
        call = _Call(
            function=function, queued_at=self._clock.monotonic(), unconditional=unconditional
        )
        self._queue[call if topic is None else topic] = call
        # Not only for the first call: the threads of a process do not survive a fork.
        if self._thread is None or not self._thread.is_alive():
            name = "tsuzuki-circuit-breaker"
            self._thread = threading.Thread(target=self._run, name=name, daemon=True)
            self._thread.start()
        self._changed.notify()
        return call

    # --- in the thread --------------------------------------------------------------------------

    def _run(self) -> None:
        while (call := self._next()) is not None:
            if call.answer.set_running_or_notify_cancel():
                call.answer.set_result(self._make(call))

    def _next(self) -> _Call | None:
        with self._changed:
            while not self._queue:
                if self._is_shut_down:
                    return None
                self._changed.wait()
            return self._queue.pop(next(iter(self._queue)))

    def _make(self, call: _Call) -> Any:
        # A heartbeat or a wake-up that was held up is outdated.
        is_late = self._clock.monotonic() - call.queued_at > CALL_TIMEOUT_SECONDS
        if (is_late or self.is_open) and not call.unconditional:
            return None
        try:
            return call.function()
        except Exception as problem:  # noqa: BLE001 -- no error of the service may reach a caller
            self.record_failure(problem)
            return None

    def _try_to_close(self) -> None:
        self._probe()
        with self._changed:
            since, self._open_since = self._open_since, None
        if since is not None:
            down_seconds = round(self._clock.monotonic() - since, 1)
            log.info("service available again", service=self._service, down_seconds=down_seconds)
