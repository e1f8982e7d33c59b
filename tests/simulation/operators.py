"""People and programs that ask for things, through the same services as any face, over a bad line too."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from simulation.party import Party
from simulation.reach import LawBroken
from tsuzuki.model.errors import Conflict, NotFound, Unreachable, UsageError
from tsuzuki.services.events import Events
from tsuzuki.services.runs import Request, Runs
from tsuzuki.services.settings import Settings
from tsuzuki.services.workers import Workers

if TYPE_CHECKING:
    from simulation.node import Node
    from simulation.world import World


@dataclass(kw_only=True)
class Ledger:
    """What was confirmed to somebody, and so must be true at the end."""

    runs: dict[int, str] = field(default_factory=dict)
    canceled: set[int] = field(default_factory=set)
    repeats: dict[int, int] = field(default_factory=dict)
    events: set[int] = field(default_factory=set)
    keys: dict[tuple[str, str], int] = field(default_factory=dict)
    rows: set[int] = field(default_factory=set)


SETTING_CHANGES = (
    ("worker_ttl_seconds", (4.0, 5.0)),
    ("lease_seconds", (4.0, 5.0, 7.0)),
    ("max_orphans", (2, 3)),
    ("poll_interval_seconds", (2.0, 5.0)),
)


class Operator(Party):
    def __init__(self, world: "World", name: str) -> None:
        super().__init__(world, name)
        self._runs = Runs(database=self.database, actor=name)
        self._events = Events(database=self.database)
        self._fleet = Workers(database=self.database, actor=name)
        self._settings = Settings(database=self.database, actor=name)
        self._asked = 0

    def live(self, acts: "tuple[str, ...]", every_seconds: float) -> None:
        """Act now and then, until the world settles."""
        chance = self.world.chance
        first = ["emit", "submit"]
        while not self.world.is_settling:
            act: Callable[[], None] = getattr(self, first.pop() if first else chance.choice(acts))
            try:
                act()
            except (Conflict, NotFound, UsageError) as answer:
                self.world.reached[f"an operator was told: {answer.specific_code}"] += 1
            except Unreachable:
                self.world.reached["an operator got no answer"] += 1
            self.world.turns.rest(0.1 if first else chance.random() * 2 * every_seconds)

    # --- acts -----------------------------------------------------------------------------------

    def submit(self) -> None:
        """With a key, asked again until it is answered; it is one run however often."""
        chance = self.world.chance
        self._asked += 1
        if chance.random() < 0.5:
            request = Request(job="asked", idempotency_key=f"{self.name}-{self._asked // 2}")
        else:
            request = Request(job="keyed", arguments={"to": chance.choice("ab")})
        self.world.tell(f"{self.name} asks for a run of {request.job}")
        submission = self._until_answered(
            lambda: self._runs.submit(request), request.idempotency_key is not None
        )
        self.world.ledger.runs[submission.run_id] = request.job
        if request.idempotency_key is not None:
            self._same("run", request.idempotency_key, submission.run_id)

    def emit(self) -> None:
        self._asked += 1
        key = f"{self.name}-{self._asked // 2}"
        self.world.tell(f"{self.name} emits {key}")
        event, is_new = self._until_answered(
            lambda: self._events.emit("news", {"of": key}, dedupe_key=key), True
        )
        self.world.reached["an event was emitted twice"] += not is_new
        self.world.ledger.events.add(event.id)
        self._same("event", key, event.id)

    def cancel(self) -> None:
        run_id = self._some_run(live=True)
        self.world.tell(f"{self.name} cancels run {run_id}")
        self._runs.cancel(run_id)
        self.world.ledger.canceled.add(run_id)

    def retry(self) -> None:
        run_id = self._some_run(live=False)
        self.world.tell(f"{self.name} repeats run {run_id}")
        self.world.ledger.repeats[run_id] = self._runs.retry(run_id).run_id

    def drain(self) -> None:
        node = self._some_worker()
        node.was_drained = True
        self._fleet.drain(node.engine.worker.identity.id)

    def detach(self) -> None:
        worker_id = self._some_worker().engine.worker.identity.id
        self.world.tell(f"{self.name} detaches {worker_id}")
        self._fleet.detach(worker_id)

    def step_down(self) -> None:
        self.world.tell(f"{self.name} ends the leader's term")
        self._fleet.step_down()

    def change_settings(self) -> None:
        key, values = self.world.chance.choice(SETTING_CHANGES)
        self.world.settings_changed_at = self.world.turns.now + 6.0
        self._settings.set(key, self.world.chance.choice(values))
        self.world.reached["settings were changed"] += 1

    # --- about them -----------------------------------------------------------------------------

    def _until_answered(self, ask: Callable, again: bool):  # type: ignore[no-untyped-def, type-arg]
        while True:
            try:
                return ask()
            except Unreachable:
                if not again or self.world.is_settling:
                    raise
                self.world.turns.rest(0.3)

    def _same(self, kind: str, key: str, answered: int) -> None:
        if self.world.ledger.keys.setdefault((kind, key), answered) != answered:
            raise LawBroken(f"the key {key} has made two {kind}s")

    def _some_run(self, *, live: bool) -> int:
        lives = self.world.laws.lives
        runs = [run_id for run_id, life in lives.items() if life.state.is_final is not live]
        if not runs:
            raise NotFound("there is no such run")
        return self.world.chance.choice(runs)

    def _some_worker(self) -> "Node":
        nodes = [node for node in self.world.nodes if node.role.work and not node.is_dead]
        if not nodes:
            raise NotFound("there is no worker")
        return self.world.chance.choice(nodes)
