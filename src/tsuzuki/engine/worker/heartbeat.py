"""A worker's sign of life, and its own judgement when it cannot be given.

Liveness is told here and nowhere else: one write per worker, whatever it runs. If the answer is that we were
cut off, or if no answer comes for too long, we ask to be confirmed; without a word in time we stop what
we run ourselves. Our deadline always comes before the leader's verdict, so a run that was given up on is
not running any more.
"""

from collections.abc import Callable
from enum import StrEnum

from tsuzuki.model.clock import Clock
from tsuzuki.model.errors import Unreachable
from tsuzuki.model.settings import EngineSettings
from tsuzuki.model.worker import WorkerState
from tsuzuki.store import workers
from tsuzuki.store.runs import ownership
from tsuzuki.store.sql.database import Database
from tsuzuki.store.wakeups import channels
from tsuzuki.store.wakeups.channels import Channel


class HeartbeatResult(StrEnum):
    """How we stand after a beat."""

    OK = "ok"
    """Heard, and taking work."""

    DRAINING = "draining"
    """Heard; we are to finish what we have and take nothing new."""

    UNREACHABLE = "unreachable"
    """The database did not answer. There is still time."""

    CONFIRMING = "confirming"
    """We were cut off, or were silent for too long, and asked to go on. There is still time."""

    LOST = "lost"
    """Time is up, or we were sent away: everything we run must stop now."""


class Heartbeat:
    """`tick` is one beat. It keeps no thread; whoever does must never be held up by a handler."""

    def __init__(
        self,
        *,
        database: Database,
        clock: Clock,
        settings: Callable[[], EngineSettings],
        worker_id: Callable[[], str],
    ) -> None:
        self._database = database
        self._clock = clock
        self._settings = settings
        self._worker_id = worker_id
        self._heard_at = clock.monotonic()
        self._requests = 0
        self._checks_hung = 0
        self.is_sending = False

    def tick(self) -> HeartbeatResult:
        """One beat. It may hang as long as the driver does: see `looks_hung`."""
        self.is_sending = True
        try:
            return self._tick()
        finally:
            self.is_sending = False

    def looks_hung(self, check_seconds: float) -> bool:
        """Asked every `check_seconds` from another thread: whether a beat hangs in the driver although our
        time is up. Counted in looks and not in time, because a process that was paused looks not once
        meanwhile, and is to ask first when it wakes."""
        hangs = self.is_sending and not self.is_sure
        self._checks_hung = self._checks_hung + 1 if hangs else 0
        return self._checks_hung * check_seconds >= self._settings().continuation_seconds

    def _tick(self) -> HeartbeatResult:
        asked_at = self._clock.monotonic()
        me = self._worker_id()
        try:
            state, in_doubt = self._send(me)
        except Unreachable:
            return self._unreachable()
        match state:
            case None | WorkerState.GONE:
                return HeartbeatResult.LOST
            case WorkerState.DETACHED:
                return self._request_confirmation(me)
            case WorkerState.ATTACHED | WorkerState.DRAINING if in_doubt:
                return self._request_confirmation(me)
            case _:
                self.renew(asked_at)
                return (
                    HeartbeatResult.DRAINING
                    if state is WorkerState.DRAINING
                    else HeartbeatResult.OK
                )

    def _send(self, me: str) -> tuple[WorkerState | None, bool]:
        """How we are held, and whether the leader has yet to say that our runs may go on."""
        if self._requests == 0:
            with self._database.statement() as connection:
                return workers.heartbeat(connection, me), False
        with self._database.write() as connection:
            return workers.heartbeat(connection, me), ownership.count_unconfirmed(
                connection, me
            ) > 0

    def renew(self, heard_at: float) -> None:
        """We were heard at that moment of the monotonic clock; nothing is in doubt. Not an earlier one
        than is known: a beat that hung may be answered after we came back under another name."""
        self._heard_at = max(self._heard_at, heard_at)
        self._requests = 0

    @property
    def is_sure(self) -> bool:
        """Whether the leader surely still leaves our runs to us."""
        return self._seconds_left() > 0

    def seconds_to_next(self, pulse: HeartbeatResult) -> float:
        """How long to wait before the next beat: never past the deadline, if there is one."""
        settings = self._settings()
        match pulse:
            case HeartbeatResult.UNREACHABLE:
                return min(
                    settings.continuation_retry_interval_seconds, max(self._seconds_left(), 0.0)
                )
            case HeartbeatResult.CONFIRMING:
                return settings.continuation_retry_interval_seconds
            case _:
                return settings.heartbeat_interval_seconds

    def _unreachable(self) -> HeartbeatResult:
        return HeartbeatResult.UNREACHABLE if self._seconds_left() > 0 else HeartbeatResult.LOST

    def _request_confirmation(self, me: str) -> HeartbeatResult:
        # Asking is safe however late it is: it marks only runs that are still ours, and from then
        # on the mark itself keeps the leader from taking them.
        settings = self._settings()
        if self._requests >= settings.continuation_retry_count:
            return HeartbeatResult.LOST
        try:
            with self._database.write() as connection:
                workers.request_confirmation(
                    connection,
                    worker_id=me,
                    deadline_seconds=settings.continuation_seconds,
                )
                channels.notify(connection, Channel.LEADER)
        except Unreachable:
            return self._unreachable()
        self._requests += 1
        return HeartbeatResult.CONFIRMING

    def _seconds_left(self) -> float:
        """Until the moment up to which the leader surely leaves our runs to us."""
        settings = self._settings()
        silent = self._clock.monotonic() - self._heard_at
        return settings.worker_ttl_seconds + settings.continuation_seconds - silent
