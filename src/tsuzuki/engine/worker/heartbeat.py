"""A worker's heartbeat, and what it does by itself when heartbeats fail.

Liveness is written here and nowhere else: one write per worker, however many runs it has. If the answer is
that we are detached, or if the database was unreachable for too long, we request confirmation from the
leader; without it in time we stop everything we run. Our deadline always comes before the leader's, so a run
that the leader fails as lost is not running any more.
"""

from collections.abc import Callable
from enum import StrEnum

from tsuzuki.model.clock import Clock
from tsuzuki.model.errors import Unreachable
from tsuzuki.model.settings import EngineSettings
from tsuzuki.model.worker import WorkerState
from tsuzuki.store import workers
from tsuzuki.store.runs import ownership
from tsuzuki.store.sql.database import Database, Use
from tsuzuki.store.wakeups import channels
from tsuzuki.store.wakeups.channels import Channel


class HeartbeatResult(StrEnum):
    """The worker's situation after a heartbeat."""

    OK = "ok"
    """Stored, and attached."""

    DRAINING = "draining"
    """Stored; the worker is to finish what it has and start nothing new."""

    UNREACHABLE = "unreachable"
    """The database did not answer. The deadline has not passed."""

    CONFIRMING = "confirming"
    """We were detached, or silent for too long, and have requested confirmation. The deadline has not
    passed."""

    LOST = "lost"
    """The deadline has passed, or we are registered no more: everything we run must stop now."""


class Heartbeat:
    """`tick` is one heartbeat. It has no thread of its own; the one that calls it must never wait for a
    handler."""

    def __init__(
        self,
        *,
        database: Database,
        clock: Clock,
        settings: Callable[[], EngineSettings],
        worker_id: Callable[[], str],
        on_stored: Callable[[float], None] = lambda _sent_at: None,
    ) -> None:
        """`on_stored` is called with the monotonic time at which a heartbeat was sent that was stored."""
        self._database = database
        self._clock = clock
        self._settings = settings
        self._worker_id = worker_id
        self._on_stored = on_stored
        self._renewed_at = clock.monotonic()
        self._requests = 0
        self._checks_hung = 0
        self.is_sending = False

    def tick(self) -> HeartbeatResult:
        """One heartbeat. It may hang as long as the driver does: see `looks_hung`."""
        self.is_sending = True
        try:
            with self._database.used_for(Use.VITAL):
                return self._tick()
        finally:
            self.is_sending = False

    def looks_hung(self, check_seconds: float) -> bool:
        """Called every `check_seconds` from another thread: whether a heartbeat hangs in the driver although
        our deadline has passed. Counted in checks and not in time: a process that was paused makes no check
        meanwhile, and is to request confirmation first when it goes on."""
        hangs = self.is_sending and not self.is_before_deadline
        self._checks_hung = self._checks_hung + 1 if hangs else 0
        return self._checks_hung * check_seconds >= self._settings().continuation_seconds

    def _tick(self) -> HeartbeatResult:
        sent_at = self._clock.monotonic()
        worker_id = self._worker_id()
        try:
            state, is_unconfirmed = self._send(worker_id)
        except Unreachable:
            return self._unreachable()
        match state:
            case None | WorkerState.GONE:
                return HeartbeatResult.LOST
            case WorkerState.DETACHED:
                return self._in_doubt(worker_id, sent_at)
            case WorkerState.ATTACHED | WorkerState.DRAINING if is_unconfirmed:
                return self._in_doubt(worker_id, sent_at)
            case _:
                self.renew(sent_at)
                return (
                    HeartbeatResult.DRAINING
                    if state is WorkerState.DRAINING
                    else HeartbeatResult.OK
                )

    def _send(self, worker_id: str) -> tuple[WorkerState | None, bool]:
        """Our state, and whether the leader has not confirmed yet that our runs may go on."""
        if self._requests == 0:
            with self._database.statement() as connection:
                return workers.heartbeat(connection, worker_id), False
        with self._database.write() as connection:
            state = workers.heartbeat(connection, worker_id)
            return state, ownership.count_unconfirmed(connection, worker_id) > 0

    def renew(self, sent_at: float) -> None:
        """A heartbeat sent at that time of the monotonic clock was stored, and nothing is unconfirmed. Never
        moves back: a heartbeat that hung may be answered after we rejoined under another id."""
        self._renewed_at = max(self._renewed_at, sent_at)
        self._requests = 0
        self._on_stored(self._renewed_at)

    @property
    def is_before_deadline(self) -> bool:
        """Whether the leader surely has not failed our runs as lost."""
        return self._seconds_left() > 0

    def seconds_to_next(self, result: HeartbeatResult) -> float:
        """How long to wait before the next heartbeat: never past the deadline, if there is one."""
        settings = self._settings()
        match result:
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

    def _in_doubt(self, worker_id: str, sent_at: float) -> HeartbeatResult:
        # The heartbeat is stored: the leader counts our silence from now on, whether it confirms us or not.
        self._on_stored(max(self._renewed_at, sent_at))
        return self._request_confirmation(worker_id)

    def _request_confirmation(self, worker_id: str) -> HeartbeatResult:
        # A request is safe however late it comes: it marks only runs that we still own, and from then on the
        # mark itself keeps the leader from failing them.
        settings = self._settings()
        if self._requests >= settings.continuation_retry_count:
            return HeartbeatResult.LOST
        try:
            with self._database.write() as connection:
                workers.request_confirmation(
                    connection,
                    worker_id=worker_id,
                    deadline_seconds=settings.continuation_seconds,
                )
                channels.notify(connection, Channel.LEADER)
        except Unreachable:
            return self._unreachable()
        self._requests += 1
        return HeartbeatResult.CONFIRMING

    def _seconds_left(self) -> float:
        """Until our deadline: before it, the leader surely does not fail our runs as lost."""
        settings = self._settings()
        silent_seconds = self._clock.monotonic() - self._renewed_at
        return settings.worker_ttl_seconds + settings.continuation_seconds - silent_seconds
