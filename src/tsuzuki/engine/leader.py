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

from tsuzuki.engine.assigner import Assigner
from tsuzuki.engine.coordination import Coordination
from tsuzuki.engine.intake import Intake
from tsuzuki.engine.patience import Patience
from tsuzuki.engine.planner import Planner
from tsuzuki.engine.rescuer import Rescuer
from tsuzuki.model.clock import Clock
from tsuzuki.model.settings import EngineSettings
from tsuzuki.store import dispatch, leadership
from tsuzuki.store.database import Database
from tsuzuki.store.leadership import Term


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
        with self._database.write() as connection:
            if term is None:
                return leadership.take(connection, holder=self._holder, lease_seconds=lease_seconds)
            renewed = leadership.renew(connection, term=term, lease_seconds=lease_seconds)
            return term if renewed else None

    def free_at_once(self) -> bool:
        """Whether nobody leads: worth trying to, without waiting for the usual round."""
        with self._database.read() as connection:
            return not leadership.current(connection).is_valid

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
    ) -> None:
        self._database = database
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
        wake_workers: Callable[[], None] = lambda: None,
    ) -> "Leader":
        rescuer = Rescuer(
            database=database, settings=settings, random=random, coordination=coordination
        )
        return cls(
            database=database,
            planner=Planner(database=database, settings=settings),
            intake=Intake(database=database),
            rescuer=rescuer,
            assigner=Assigner(
                database=database, coordination=coordination, wake_workers=wake_workers
            ),
            patience=Patience(clock=database.clock, settings=settings),
        )

    def tick(self, term: Term) -> Led:
        """One round of all duties. What waits already is given out first, because somebody may be
        waiting for it; then the others, in the order in which they make work for each other."""
        assigned = self._assigner.tick(term)
        planned = self._planner.tick(term)
        looked_at = self._database.clock.monotonic()
        seen = self._intake.tick(term)
        # Looked at in every round, so that a jump between two of them is seen in the next.
        self._patience.may_judge(term, planned.now)
        rescued = self._rescuer.tick(term, may_judge=partial(self._patience.may_judge, term))
        if planned.created or seen or rescued.made_work:
            assigned += self._assigner.tick(term)
        next_at = self._next_at(planned.next_at)
        passed = self._database.clock.monotonic() - looked_at
        return Led(
            planned=planned.created,
            skipped=planned.skipped + rescued.canceled,
            events=seen,
            assigned=assigned,
            rescued=rescued.orphaned + rescued.failed + rescued.reattached,
            again_at_once=bool(planned.more or seen or assigned),
            next_at=next_at,
            seconds_to_next=(next_at - planned.now).total_seconds() - passed if next_at else None,
        )

    def _next_at(self, next_tick: datetime | None) -> datetime | None:
        """The next moment at which something becomes due by itself."""
        with self._database.read() as connection:
            next_run = dispatch.next_due_at(connection)
        return min((moment for moment in (next_tick, next_run) if moment), default=None)
