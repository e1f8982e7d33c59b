"""Calls to a helper that may be away, made in a thread of their own so that nobody hangs with them.

A caller waits `PATIENCE_SECONDS` at most, whatever the call is stuck in: a name lookup, a handshake, a server
that was paused. After a failure nothing is called but a trial, now and then, with nobody waiting for it;
once a trial succeeds everything goes on as before. So an outage costs one caller one wait and the others
nothing. It is said once when it begins and once when it ends.
"""

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tsuzuki.engine.journal import log
from tsuzuki.model.clock import Clock

T = TypeVar("T")

PATIENCE_SECONDS = 0.25
"""So long may a caller be kept."""

RETRY_SECONDS = 1.0
"""The pause between two trials while the helper is away."""

TRIAL = "trial"


@dataclass(frozen=True, kw_only=True, eq=False)
class _Errand:
    call: Callable[[], Any]
    sent_at: float
    in_any_case: bool = False
    """Even while the helper is thought to be away, and however late."""
    answer: "Future[Any]" = field(default_factory=Future)


class Errands:
    """Runs calls one after another, in the order in which they came. Safe to use from any thread."""

    def __init__(self, *, helper: str, trial: Callable[[], object], clock: Clock) -> None:
        self._helper = helper
        self._trial = trial
        self._clock = clock
        self._changed = threading.Condition()
        self._waiting: dict[Hashable, _Errand] = {}
        self._thread: threading.Thread | None = None
        self._away_since: float | None = None
        self._try_at = 0.0
        self._is_closed = False

    @property
    def is_away(self) -> bool:
        return self._away_since is not None

    def send(self, topic: Hashable, call: Callable[[], object]) -> None:
        """Have it done soon, or not at all. It takes the place of an errand on the same topic that
        has not left yet, so what is sent faster than it can leave does not pile up."""
        with self._changed:
            if self._may_leave():
                self._put(call, topic=topic)

    def ask(self, call: Callable[[], T]) -> T | None:
        """Its answer, or None if there is none in time."""
        with self._changed:
            if not self._may_leave():
                return None
            answer: Future[T | None] = self._put(call).answer
        try:
            return answer.result(PATIENCE_SECONDS)
        except TimeoutError:
            answer.cancel()
            self.failed(TimeoutError(f"no answer within {PATIENCE_SECONDS:g} s"))
            return None

    def may_leave(self) -> bool:
        """Whether the helper is worth calling now. If not, a trial is made when it is time."""
        with self._changed:
            return self._may_leave()

    def failed(self, problem: Exception) -> None:
        """The helper did not do what it should: leave it alone for a while."""
        now = self._clock.monotonic()
        with self._changed:
            if self.is_away:
                return
            self._away_since, self._try_at = now, now + RETRY_SECONDS
            is_worth_saying = not self._is_closed
        if is_worth_saying:
            log.warning(
                "a helper is out of reach, going on without it",
                helper=self._helper,
                error=str(problem) or repr(problem),
            )

    def close(self, last: Callable[[], object]) -> None:
        """Let what was sent leave, then make one last call. Nothing is called any more after it."""
        with self._changed:
            if self._is_closed:
                return
            answer = self._put(last, in_any_case=True).answer
            self._is_closed = True
        with suppress(TimeoutError):
            answer.result(PATIENCE_SECONDS)

    # --- with the lock held ---------------------------------------------------------------------

    def _may_leave(self) -> bool:
        if self._is_closed:
            return False
        if not self.is_away:
            return True
        now = self._clock.monotonic()
        if now >= self._try_at:
            self._try_at = now + RETRY_SECONDS
            self._put(self._try_again, topic=TRIAL, in_any_case=True)
        return False

    def _put(
        self,
        call: Callable[[], object],
        *,
        topic: Hashable = None,
        in_any_case: bool = False,
    ) -> _Errand:
        errand = _Errand(call=call, sent_at=self._clock.monotonic(), in_any_case=in_any_case)
        self._waiting[errand if topic is None else topic] = errand
        # Not only at the first errand: the threads of a process do not follow it through a fork.
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._run, name="tsuzuki-errands", daemon=True)
            self._thread.start()
        self._changed.notify()
        return errand

    # --- in the thread --------------------------------------------------------------------------

    def _run(self) -> None:
        while (errand := self._next()) is not None:
            if errand.answer.set_running_or_notify_cancel():
                errand.answer.set_result(self._do(errand))

    def _next(self) -> _Errand | None:
        with self._changed:
            while not self._waiting:
                if self._is_closed:
                    return None
                self._changed.wait()
            return self._waiting.pop(next(iter(self._waiting)))

    def _do(self, errand: _Errand) -> Any:
        # A sign of life or a wake-up that was held up says nothing true any more.
        is_late = self._clock.monotonic() - errand.sent_at > PATIENCE_SECONDS
        if (is_late or self.is_away) and not errand.in_any_case:
            return None
        try:
            return errand.call()
        except Exception as problem:  # noqa: BLE001 -- whatever it is, it must not reach a caller
            self.failed(problem)
            return None

    def _try_again(self) -> None:
        self._trial()
        with self._changed:
            since, self._away_since = self._away_since, None
        if since is not None:
            away_seconds = round(self._clock.monotonic() - since, 1)
            log.info("a helper is back", helper=self._helper, away_seconds=away_seconds)
