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
from tsuzuki.store import dispatch, notices, workers
from tsuzuki.store.database import Database


class Pulse(StrEnum):
    """How we stand after a beat."""

    WELL = "well"
    """Heard, and taking work."""

    DRAINING = "draining"
    """Heard; we are to finish what we have and take nothing new."""

    UNHEARD = "unheard"
    """The database did not answer. There is still time."""

    ASKING = "asking"
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
        self._asked = 0
        self._hanging_looks = 0
        self.is_beating = False

    def tick(self) -> Pulse:
        """One beat. It may hang as long as the driver does: see `looks_hung`."""
        self.is_beating = True
        try:
            return self._beat()
        finally:
            self.is_beating = False

    def looks_hung(self, look_seconds: float) -> bool:
        """Asked every `look_seconds` from another thread: whether a beat hangs in the driver although our
        time is up. Counted in looks and not in time, because a process that was paused looks not once
        meanwhile, and is to ask first when it wakes."""
        hangs = self.is_beating and not self.is_sure
        self._hanging_looks = self._hanging_looks + 1 if hangs else 0
        return self._hanging_looks * look_seconds >= self._settings().continuation_seconds

    def _beat(self) -> Pulse:
        asked_at = self._clock.monotonic()
        me = self._worker_id()
        try:
            state, in_doubt = self._say_that_we_live(me)
        except Unreachable:
            return self._unheard()
        match state:
            case None | WorkerState.GONE:
                return Pulse.LOST
            case WorkerState.DETACHED:
                return self._ask(me)
            case WorkerState.ATTACHED | WorkerState.DRAINING if in_doubt:
                return self._ask(me)
            case _:
                self.renew(asked_at)
                return Pulse.DRAINING if state is WorkerState.DRAINING else Pulse.WELL

    def _say_that_we_live(self, me: str) -> tuple[WorkerState | None, bool]:
        """How we are held, and whether the leader has yet to say that our runs may go on."""
        if self._asked == 0:
            with self._database.statement() as line:
                return workers.beat(line, me), False
        with self._database.write() as connection:
            return workers.beat(connection, me), dispatch.unconfirmed(connection, me) > 0

    def renew(self, heard_at: float) -> None:
        """We were heard at that moment of the monotonic clock; nothing is in doubt. Not an earlier one
        than is known: a beat that hung may be answered after we came back under another name."""
        self._heard_at = max(self._heard_at, heard_at)
        self._asked = 0

    @property
    def is_sure(self) -> bool:
        """Whether the leader surely still leaves our runs to us."""
        return self._seconds_left() > 0

    def seconds_to_next(self, pulse: Pulse) -> float:
        """How long to wait before the next beat: never past the deadline, if there is one."""
        settings = self._settings()
        match pulse:
            case Pulse.UNHEARD:
                return min(
                    settings.continuation_retry_interval_seconds, max(self._seconds_left(), 0.0)
                )
            case Pulse.ASKING:
                return settings.continuation_retry_interval_seconds
            case _:
                return settings.heartbeat_interval_seconds

    def _unheard(self) -> Pulse:
        return Pulse.UNHEARD if self._seconds_left() > 0 else Pulse.LOST

    def _ask(self, me: str) -> Pulse:
        # Asking is safe however late it is: it marks only runs that are still ours, and from then
        # on the mark itself keeps the leader from taking them.
        settings = self._settings()
        if self._asked >= settings.continuation_retry_count:
            return Pulse.LOST
        try:
            with self._database.write() as connection:
                workers.ask_to_continue(
                    connection,
                    worker_id=me,
                    deadline_seconds=settings.continuation_seconds,
                )
                notices.notify(connection, notices.Audience.LEADER)
        except Unreachable:
            return self._unheard()
        self._asked += 1
        return Pulse.ASKING

    def _seconds_left(self) -> float:
        """Until the moment up to which the leader surely leaves our runs to us."""
        settings = self._settings()
        silent = self._clock.monotonic() - self._heard_at
        return settings.worker_ttl_seconds + settings.continuation_seconds - silent
