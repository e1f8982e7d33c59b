"""Leading: one process at a time plans, assigns and rescues; the others wait for its lease to end.

A term is believed only until a deadline of our own monotonic clock, counted from before the statement that
won or renewed it and a margin short of the lease. So a leader stops by itself before anybody else can
begin, and whatever it still sends after a long pause is refused by its epoch.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from random import Random

from tsuzuki.engine.assigner import Assigner, OwnWorker
from tsuzuki.engine.coordination import Coordination
from tsuzuki.engine.intake import Intake
from tsuzuki.engine.patience import Patience
from tsuzuki.engine.planner import Planned, Planner
from tsuzuki.engine.rescuer import Rescued, Rescuer
from tsuzuki.model.clock import Clock
from tsuzuki.model.settings import EngineSettings
from tsuzuki.store import glance, leadership
from tsuzuki.store.database import Database
from tsuzuki.store.glance import Glance
from tsuzuki.store.leadership import Term

GLANCE_SECONDS = 0.1
"""How long a busy leader may give out work without a glance at everything else."""

BREATH_SECONDS = 0.005
"""How long a leader that was told of work and gave it out waits before it goes on."""


class Lease:
    """Whether we lead, and until when we may believe it."""

    def __init__(
        self,
        *,
        database: Database,
        clock: Clock,
        settings: Callable[[], EngineSettings],
        holder: str,
    ) -> None:
        self._database = database
        self._clock = clock
        self._settings = settings
        self._holder = holder
        self._term: Term | None = None
        self._believed_until = 0.0

    @property
    def term(self) -> Term | None:
        """Our term, while we may believe in it."""
        term = self._term
        return term if term and self._clock.monotonic() < self._believed_until else None

    def tick(self) -> bool:
        """Renew our lease, or take a free one. True when we lead afterwards. On any error the
        term is given up: only the database could say that it still holds."""
        asked_at = self._clock.monotonic()
        settings = self._settings()
        # A term that is being renewed still holds, until its old deadline: leading goes on.
        term = self._term = self.term
        try:
            held = self._ask(term, settings.lease_seconds)
        except BaseException:
            self._term = None
            raise
        if held is not None:
            self._believed_until = asked_at + settings.lease_seconds - settings.lease_margin_seconds
        self._term = held
        return held is not None

    def _ask(self, term: Term | None, lease_seconds: float) -> Term | None:
        with self._database.statement() as connection:
            if term is None:
                return leadership.take(connection, holder=self._holder, lease_seconds=lease_seconds)
            renewed = leadership.renew(connection, term=term, lease_seconds=lease_seconds)
            return term if renewed else None

    def seconds_until_free(self) -> float:
        """When it is worth trying to lead: 0 if nobody does."""
        left = self._left()
        if not left.is_possible:
            with self._database.statement() as line:
                leadership.cut_to_measure(line, left)
            left = self._left()
        return left.seconds

    def _left(self) -> leadership.Left:
        with self._database.read() as connection:
            return leadership.lease_left(connection)

    def step_down(self) -> None:
        """Let another lead at once."""
        term, self._term = self._term, None
        if term is not None:
            with self._database.write() as connection:
                leadership.release(connection, term=term)


@dataclass(kw_only=True)
class Led:
    """What one round did, and when the next one is due at the latest (None: by the poll)."""

    planned: int = 0
    skipped: int = 0
    events: int = 0
    assigned: int = 0
    rescued: int = 0
    again_at_once: bool = False
    next_at: datetime | None = None
    seconds_to_next: float | None = None
    """The same by the database's clock, which ours may be far from."""

    @property
    def did_something(self) -> bool:
        return bool(self.planned or self.skipped or self.events or self.assigned or self.rescued)


class Leader:
    """The duties of whoever leads. Each is its own small transactions under the term."""

    def __init__(
        self,
        *,
        database: Database,
        planner: Planner,
        intake: Intake,
        rescuer: Rescuer,
        assigner: Assigner,
        patience: Patience,
        settings: Callable[[], EngineSettings],
    ) -> None:
        self._database = database
        self._settings = settings
        self._planned_for: tuple[int, ...] | None = None
        self._next_tick: datetime | None = None
        self._is_busy = False
        self._owes_a_call = False
        self._looked_at = 0.0
        self._planner = planner
        self._intake = intake
        self._rescuer = rescuer
        self._assigner = assigner
        self._patience = patience

    @classmethod
    def with_all_duties(
        cls,
        *,
        database: Database,
        settings: Callable[[], EngineSettings],
        random: Random,
        coordination: Coordination,
        own_worker: OwnWorker | None = None,
    ) -> "Leader":
        rescuer = Rescuer(
            database=database, settings=settings, random=random, coordination=coordination
        )
        return cls(
            database=database,
            planner=Planner(database=database, settings=settings),
            intake=Intake(database=database),
            rescuer=rescuer,
            assigner=Assigner(database=database, coordination=coordination, own_worker=own_worker),
            patience=Patience(clock=database.clock, settings=settings),
            settings=settings,
        )

    def tick(self, term: Term, *, told: bool = False) -> Led:
        """One round: a glance, then the duties it calls for. What waits is given out first, because
        somebody may be waiting for it; then the others, in the order in which they make work for each
        other. A leader that was `told` of something while it had nothing to do gives that out before
        all else, and one that has much to give out only does that between two glances."""
        looked_at = self._database.clock.monotonic()
        if self._is_busy and looked_at - self._looked_at < GLANCE_SECONDS:
            assigned = self._assigner.tick(term)
            if assigned:
                return Led(assigned=assigned, again_at_once=True)
        elif told and not self._is_busy and self._assigner.give_first(term):
            # What was given begins now; a glance at this moment would only be in its way.
            self._is_busy = self._owes_a_call = True
            return Led(assigned=1, seconds_to_next=BREATH_SECONDS)
        self._looked_at = looked_at
        seen = self._glance()
        assigned = self._assigner.tick(term) if seen.is_due else 0
        planned = self._plan(term, seen)
        events = self._intake.tick(term) if seen.has_events else 0
        # Looked at in every round, so that a jump between two of them is seen in the next.
        self._patience.may_judge(term, seen.now)
        rescued = self._rescue(term) if seen.needs_rescue else Rescued()
        if planned.created or events or rescued.made_work:
            assigned += self._assigner.tick(term)
        led = Led(
            planned=planned.created,
            skipped=planned.skipped + rescued.canceled,
            events=events,
            assigned=assigned,
            rescued=rescued.orphaned + rescued.failed + rescued.reattached,
            again_at_once=bool(planned.more or events or assigned),
        )
        self._is_busy = bool(assigned)
        if led.again_at_once:
            return led
        next_run = self._next_run() if led.did_something else seen.next_due_at
        led.next_at = min((at for at in (planned.next_at, next_run) if at), default=None)
        if led.next_at is not None:
            passed = self._database.clock.monotonic() - looked_at
            led.seconds_to_next = (led.next_at - seen.now).total_seconds() - passed
        if seen.needs_rescue and (left := self._patience.seconds_left()) > 0:
            known = led.seconds_to_next
            led.seconds_to_next = left if known is None else min(known, left)
        return led

    def rouse_if_owed(self) -> None:
        """Our own worker hears now of what was begun for it a moment ago. Whether we still lead or not:
        it is owed to the run."""
        if self._owes_a_call:
            self._owes_a_call = False
            self._assigner.rouse_own_worker()

    def _glance(self) -> Glance:
        settings = self._settings()
        with self._database.read() as connection:
            return glance.look(
                connection,
                silent_after_seconds=settings.worker_ttl_seconds,
                max_orphans=settings.max_orphans,
            )

    def _plan(self, term: Term, seen: Glance) -> Planned:
        """Plan if a tick has come, or if jobs were changed since they were last looked at."""
        known = (term.epoch, *seen.jobs)
        is_early = self._next_tick is None or seen.now < self._next_tick
        if known == self._planned_for and is_early:
            return Planned(now=seen.now, next_at=self._next_tick)
        self._planned_for = None
        planned = self._planner.tick(term)
        self._next_tick = planned.next_at
        if planned.is_complete:
            self._planned_for = known
        return planned

    def _rescue(self, term: Term) -> Rescued:
        return self._rescuer.tick(term, may_judge=partial(self._patience.may_judge, term))

    def _next_run(self) -> datetime | None:
        with self._database.read() as connection:
            return glance.next_due_at(connection)
