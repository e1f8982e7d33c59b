"""A worker's heartbeat, and what it does by itself when heartbeats fail.

Liveness is written here and nowhere else: one write per worker, however many runs it has. If the answer is
that we are detached, or if the database was unreachable for too long, we request confirmation from the
leader; without it in time we stop everything we run. Our deadline always comes before the leader's, so a run
that the leader fails as lost is not running any more.

SQLite: one long transaction keeps every process from writing, the leader included. A heartbeat that waits for the write
lock is not silence: meanwhile we read whether a leader has recorded our silence. It fails our runs no sooner than
`silence_notice_seconds` after that record, so as long as there is none, we may go on for that long.
"""

import threading
from collections.abc import Callable
from enum import StrEnum
from operator import attrgetter

from tsuzuki.model.clock import Clock
from tsuzuki.model.errors import Unreachable
from tsuzuki.model.settings import SETTINGS, EngineSettings
from tsuzuki.model.worker import WorkerState
from tsuzuki.store import workers
from tsuzuki.store.runs import ownership
from tsuzuki.store.sql.database import ConnectionUse, Database
from tsuzuki.store.wakeups import channels
from tsuzuki.store.wakeups.channels import WakeupChannel


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


TTL_MIN_SECONDS = SETTINGS["worker_ttl_seconds"].minimum

_AFTER_HEARTBEAT = attrgetter("executions_end_after_seconds")
_AFTER_READING = attrgetter("executions_end_after_reading_seconds")


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
        renew_deadline: Callable[[float], None] = lambda _at: None,
    ) -> None:
        """`renew_deadline` is called with the monotonic time at which what we execute must end, if no further
        heartbeat is stored."""
        self._database = database
        self._clock = clock
        self._settings = settings
        self._worker_id = worker_id
        self._renew_deadline = renew_deadline
        self._executions_end_at = 0.0
        self._renewed_at = clock.monotonic()
        self._judged_by: dict[EngineSettings, float] = {settings(): self._renewed_at}
        """The settings that a leader may judge us by, each with the time from which our silence may count by them:
        those that are stored, and those that we sent since without an answer. What we may still do is the least that
        any of them allows. Replaced and never changed: other threads read it."""
        self._end_lock = threading.Lock()
        """Held while the end of executions is moved, so that no thread moves it by settings that are outdated."""
        self._read_at = 0.0
        """When we last read that no leader has recorded our silence."""
        self._requests = 0
        self._checks_hung = 0
        self._sending_since: float | None = None
        self._sent_at = self._renewed_at

    @property
    def is_sending(self) -> bool:
        return self._sending_since is not None

    def sending_seconds(self) -> float:
        """How long the heartbeat that is being sent has been waiting for its answer; 0 if none is."""
        since = self._sending_since
        return 0.0 if since is None else self._clock.monotonic() - since

    def tick(self) -> HeartbeatResult:
        """One heartbeat. It may hang as long as the driver does: see `looks_hung`."""
        self._sending_since = self._sent_at = self._clock.monotonic()
        try:
            with self._database.used_for(ConnectionUse.VITAL):
                return self._tick()
        finally:
            self._sending_since = None

    def looks_hung(self, check_seconds: float) -> bool:
        """Called every `check_seconds` from another thread: whether a heartbeat hangs in the driver although
        our deadline has passed. Counted in checks and not in time: a process that was paused makes no check
        meanwhile, and is to request confirmation first when it goes on."""
        hangs = self.is_sending and not self.is_before_deadline
        self._checks_hung = self._checks_hung + 1 if hangs else 0
        allowed = min(settings.continuation_seconds for settings in self._judged_by)
        return self._checks_hung * check_seconds >= allowed

    def seconds_to_next_check(self, check_seconds: float) -> float:
        """How long to wait before `looks_hung` is called again: nothing can hang for too long before the deadline, and
        no deadline that is set meanwhile is nearer than the shortest TTL."""
        return max(check_seconds, min(self._seconds_left(), TTL_MIN_SECONDS))

    def _tick(self) -> HeartbeatResult:
        sent_at, settings = self._clock.monotonic(), self._settings()
        worker_id = self._worker_id()
        works_by = None if {*self._judged_by} == {settings} else settings
        if works_by is not None:
            self._prepare_for(works_by, sent_at)
        try:
            state, is_unconfirmed = self._send(worker_id, works_by)
        except Unreachable:
            return self._unreachable()
        match state:
            case None | WorkerState.GONE:
                return HeartbeatResult.LOST
            case WorkerState.DETACHED:
                return self._in_doubt(worker_id, sent_at, settings)
            case WorkerState.ATTACHED | WorkerState.DRAINING if is_unconfirmed:
                return self._in_doubt(worker_id, sent_at, settings)
            case _:
                self.renew(sent_at, settings)
                return (
                    HeartbeatResult.DRAINING
                    if state is WorkerState.DRAINING
                    else HeartbeatResult.OK
                )

    def _prepare_for(self, settings: EngineSettings, sent_at: float) -> None:
        """Before settings are sent that a leader may judge us by, whether we get an answer or not: what we execute ends
        in time for them too, also if we are paused right after."""
        with self._end_lock:
            self._judged_by = {settings: sent_at, **self._judged_by}
            end_at = sent_at + settings.executions_end_after_seconds
            if end_at < self._executions_end_at:
                self._executions_end_at = end_at
                self._renew_deadline(end_at)

    def _send(
        self, worker_id: str, works_by: EngineSettings | None
    ) -> tuple[WorkerState | None, bool]:
        """Our state, and whether the leader has not confirmed yet that our runs may go on."""
        if self._requests == 0:
            with self._database.statement() as connection:
                return workers.heartbeat(connection, worker_id, works_by=works_by), False
        with self._database.write() as connection:
            state = workers.heartbeat(connection, worker_id, works_by=works_by)
            return state, ownership.count_unconfirmed(connection, worker_id) > 0

    def renew(self, sent_at: float, settings: EngineSettings | None = None) -> None:
        """A heartbeat sent at that time of the monotonic clock was stored with these settings, and nothing is
        unconfirmed. Never moves back: a heartbeat that hung may be answered after we rejoined under another id."""
        is_newest = sent_at >= self._renewed_at
        self._renewed_at = max(self._renewed_at, sent_at)
        self._requests = 0
        if is_newest:
            self._judged_by = {settings or self._settings(): sent_at}
        self._let_executions_go_on(self._renewed_at, _AFTER_HEARTBEAT)

    def _let_executions_go_on(
        self, since: float, seconds: Callable[[EngineSettings], float]
    ) -> None:
        """For as long as each of the settings allows that a leader may judge us by."""
        with self._end_lock:
            until = since + min(map(seconds, self._judged_by))
            self._executions_end_at = max(self._executions_end_at, until)
            self._renew_deadline(self._executions_end_at)

    def read_silence(self) -> float:
        """SQLite: if a heartbeat waits although the TTL has passed, read whether a leader has recorded our silence.
        May hang like any read, so its thread does nothing else. Answers how long to wait before the next read."""
        settings = self._settings()
        read_at = self._clock.monotonic()
        until_silent = self._renewed_at + settings.worker_ttl_seconds - read_at
        if until_silent > 0:
            return until_silent
        if self.is_sending and not self._is_silence_recorded():
            # As of the start of the read: what is recorded later is followed by the whole notice.
            self._read_at = read_at
            self._let_executions_go_on(read_at, _AFTER_READING)
        return settings.reading_seconds / 4

    def _is_silence_recorded(self) -> bool:
        with self._database.used_for(ConnectionUse.VITAL), self._database.read() as connection:
            return workers.is_silence_recorded(connection, self._worker_id())

    @property
    def is_before_deadline(self) -> bool:
        """Whether the leader surely has not failed our runs as lost."""
        return self._seconds_left() > 0

    def seconds_to_next(self, result: HeartbeatResult) -> float:
        """How long to wait before the next heartbeat: never past the deadline, if there is one. Counted from when the
        last one was sent, so that slow answers do not make heartbeats rare."""
        settings = self._settings()
        match result:
            case HeartbeatResult.UNREACHABLE:
                return min(
                    settings.continuation_retry_interval_seconds, max(self._seconds_left(), 0.0)
                )
            case HeartbeatResult.CONFIRMING:
                return settings.continuation_retry_interval_seconds
            case _:
                interval = settings.heartbeat_interval_seconds
                return max(self._sent_at + interval - self._clock.monotonic(), interval / 4)

    def _unreachable(self) -> HeartbeatResult:
        return HeartbeatResult.UNREACHABLE if self._seconds_left() > 0 else HeartbeatResult.LOST

    def _in_doubt(
        self, worker_id: str, sent_at: float, settings: EngineSettings
    ) -> HeartbeatResult:
        # The heartbeat is stored: the leader counts our silence from now on, whether it confirms us or not.
        if sent_at >= self._renewed_at:
            self._judged_by = {settings: self._renewed_at}
        self._let_executions_go_on(max(self._renewed_at, sent_at), _AFTER_HEARTBEAT)
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
                channels.notify(connection, WakeupChannel.LEADER)
        except Unreachable:
            return self._unreachable()
        self._requests += 1
        return HeartbeatResult.CONFIRMING

    def _seconds_left(self) -> float:
        """Until our deadline: before it, the leader surely does not fail our runs as lost."""
        judged_by = self._judged_by
        silent_until = min(
            heard_at + settings.worker_ttl_seconds + settings.continuation_seconds
            for settings, heard_at in judged_by.items()
        )
        reading_seconds = min(settings.reading_seconds for settings in judged_by)
        deadline = max(silent_until, self._read_at + reading_seconds)
        return deadline - self._clock.monotonic()
