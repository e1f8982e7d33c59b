"""The leader's duties, round by round: cancel, assign, plan, process events, rescue.

A round is in one of three modes. Busy: only assign, between two polls. Woken while idle: assign the first
due run at once, for the lowest latency. Otherwise: poll, and do the duties it calls for.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from random import Random

from tsuzuki.engine.coordination.protocol import Coordination
from tsuzuki.engine.leader.assigner import Assigner
from tsuzuki.engine.leader.bulk_canceler import BulkCanceler, KnownCancels
from tsuzuki.engine.leader.canceler import Canceler
from tsuzuki.engine.leader.event_intake import EventIntake
from tsuzuki.engine.leader.planner import Planner, PlanningResult
from tsuzuki.engine.leader.rescuer import Rescued, Rescuer
from tsuzuki.engine.leader.silence_guard import SilenceGuard
from tsuzuki.engine.local_start import LocalStart
from tsuzuki.model.settings import EngineSettings
from tsuzuki.store import leader_poll
from tsuzuki.store.leader_poll import LeaderPoll
from tsuzuki.store.leadership import Term
from tsuzuki.store.runs import queue
from tsuzuki.store.sql.database import Database

POLL_INTERVAL_BUSY_SECONDS = 0.1
"""How long a busy leader may only assign before it polls again."""

PAUSE_AFTER_FIRST_SECONDS = 0.005
"""How long a leader that was woken and assigned one run waits before it polls: the run starts now."""

RESCUE_INTERVAL_SECONDS = 0.5
"""How often to look again while anything needs rescue: a lost worker's runs fail at that moment, and not with
the next heartbeat of the others."""

CANCEL_INTERVAL_SECONDS = 0.5
"""How often to look whether rows are free of runs that are to be canceled."""


@dataclass(kw_only=True)
class LeaderRound:
    """What one round did, and when the next one is due at the latest (None: by the poll interval)."""

    planned: int = 0
    skipped: int = 0
    events: int = 0
    assigned: int = 0
    rescued: int = 0
    canceled: int = 0
    again_at_once: bool = False
    next_at: datetime | None = None
    seconds_to_next: float | None = None
    """The same by the database's clock, which ours may be far from."""

    @property
    def did_something(self) -> bool:
        return bool(
            self.planned
            or self.skipped
            or self.events
            or self.assigned
            or self.rescued
            or self.canceled
        )


class Leader:
    """Each duty is its own small transactions under the term."""

    def __init__(
        self,
        *,
        database: Database,
        settings: Callable[[], EngineSettings],
        random: Random,
        coordination: Coordination,
        local_start: LocalStart | None = None,
        silence_guard: SilenceGuard | None = None,
    ) -> None:
        self._database = database
        self._settings = settings
        self._planner = Planner(database=database, settings=settings)
        self._event_intake = EventIntake(database=database)
        self._canceler = Canceler(database=database)
        self._bulk_canceler = BulkCanceler(database=database)
        self._rescuer = Rescuer(
            database=database,
            settings=settings,
            random=random,
            coordination=coordination,
            gives_notice=database.is_sqlite,
        )
        self.assigner = Assigner(
            database=database,
            settings=settings,
            coordination=coordination,
            local_start=local_start,
        )
        self._silence_guard = silence_guard or SilenceGuard(clock=database.clock, settings=settings)
        self._planned_for: tuple[object, ...] | None = None
        self._next_tick: datetime | None = None
        self._next_due_at: datetime | None = None
        self._is_busy = False
        self._polled_at = 0.0

    def tick(self, term: Term, *, woken: bool = False) -> LeaderRound:
        """One round; `woken` if a wake-up, and not the poll interval, called for it."""
        now = self._database.clock.monotonic()
        if self._is_busy and now - self._polled_at < POLL_INTERVAL_BUSY_SECONDS:
            done = self._busy_round(term)
        elif woken and not self._is_busy:
            done = self._first_run_round(term)
        else:
            done = None
        return done or self._full_round(term, woken=woken)

    # --- the three modes ------------------------------------------------------------------------

    def _busy_round(self, term: Term) -> LeaderRound | None:
        assigned = self.assigner.tick(term)
        if self.assigner.is_full:
            # A run that ends wakes us; without that, we poll.
            return LeaderRound(assigned=assigned, seconds_to_next=POLL_INTERVAL_BUSY_SECONDS)
        return LeaderRound(assigned=assigned, again_at_once=True) if assigned else None

    def _first_run_round(self, term: Term) -> LeaderRound | None:
        if not self.assigner.assign_first(term):
            return None
        self._is_busy = True
        return LeaderRound(assigned=1, seconds_to_next=PAUSE_AFTER_FIRST_SECONDS)

    def _full_round(self, term: Term, *, woken: bool) -> LeaderRound:
        """Poll, then the duties in this order: what an operator canceled is stopped; what waits is assigned, because
        a caller may be waiting for it; then the others, in the order in which they make work for each other."""
        self._polled_at = self._database.clock.monotonic()
        polled = self._poll()
        canceled = self._canceler.tick(term) if polled.has_cancel_requests else 0
        canceled += self._cancel_in_bulk(term, polled)
        assigned = self._assign(term, polled, woken=woken) if polled.is_due else 0
        planned = self._plan(term, polled)
        events = self._event_intake.tick(term) if polled.has_events else 0
        # Asked in every round, so that a clock step between two of them is seen in the next.
        self._silence_guard.observe(polled.now, asked_at=self._polled_at)
        rescued = self._rescue(term) if polled.needs_rescue else Rescued()
        if planned.created or events or rescued.made_work:
            assigned += self.assigner.tick(term)
        self._is_busy = bool(assigned)
        done = LeaderRound(
            planned=planned.created,
            skipped=planned.skipped + rescued.canceled,
            events=events,
            assigned=assigned,
            rescued=rescued.orphaned + rescued.failed + rescued.reattached,
            canceled=canceled,
            again_at_once=bool(planned.more or events or assigned or canceled),
        )
        if not done.again_at_once:
            self._set_next(done, polled, planned.next_at)
        return done

    def _set_next(self, done: LeaderRound, polled: LeaderPoll, next_tick: datetime | None) -> None:
        """When the next round is due: at the next tick, the next run, or when a rescue may go on."""
        next_run = self._next_run() if done.did_something else polled.next_due_at
        done.next_at = min((at for at in (next_tick, next_run) if at), default=None)
        waits = []
        if done.next_at is not None:
            passed = self._database.clock.monotonic() - self._polled_at
            waits.append((done.next_at - polled.now).total_seconds() - passed)
        if (postponed := self.assigner.postponed_seconds) is not None:
            waits.append(postponed)
        if polled.needs_rescue:
            listening = self._silence_guard.seconds_left() or RESCUE_INTERVAL_SECONDS
            waits.append(min(listening, RESCUE_INTERVAL_SECONDS))
        if polled.has_cancel_requests or polled.has_bulk_cancels:
            waits.append(CANCEL_INTERVAL_SECONDS)
        done.seconds_to_next = min(waits, default=None)

    # --- the duties -----------------------------------------------------------------------------

    def _poll(self) -> LeaderPoll:
        settings = self._settings()
        with self._database.read() as connection:
            return leader_poll.poll(
                connection,
                silent_after_seconds=settings.worker_ttl_seconds,
                max_orphans=settings.max_orphans,
            )

    def _cancel_in_bulk(self, term: Term, polled: LeaderPoll) -> int:
        """The number of confirmed cancels was read before the list: one that is confirmed in between lets the next
        assignment be refused, and is known in the round after."""
        has_any = polled.has_bulk_cancels
        canceled = self._bulk_canceler.tick(term) if has_any else 0
        active = self._bulk_canceler.active() if has_any else ()
        self.assigner.know_cancels(KnownCancels(polled.bulk_cancels, active))
        return canceled

    def _assign(self, term: Term, polled: LeaderPoll, *, woken: bool) -> int:
        """A run that was due later, or a changed job, sends no wake-up."""
        has_become_due = self._next_due_at is not None and self._next_due_at <= polled.now
        has_changed = self._planned_for != (term.epoch, *polled.jobs)
        self._next_due_at = polled.next_due_at
        expects_change = woken or self._is_busy or has_become_due or has_changed
        return self.assigner.tick(term, expects_change=expects_change)

    def _plan(self, term: Term, polled: LeaderPoll) -> PlanningResult:
        """Plan if a tick has come, or if jobs were changed since the last planning."""
        known = (term.epoch, *polled.jobs)
        is_early = self._next_tick is None or polled.now < self._next_tick
        if known == self._planned_for and is_early:
            return PlanningResult(now=polled.now, next_at=self._next_tick)
        self._planned_for = None
        planned = self._planner.tick(term)
        self._next_tick = planned.next_at
        if planned.is_complete:
            self._planned_for = known
        return planned

    def _rescue(self, term: Term) -> Rescued:
        return self._rescuer.tick(term, may_judge=self._silence_guard.may_judge)

    def _next_run(self) -> datetime | None:
        with self._database.read() as connection:
            return queue.next_due_at(connection)
