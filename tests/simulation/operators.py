"""Operators and programs: they call the same services as every interface, over a faulty connection too."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from simulation.bulk_cancels import BulkCancels
from simulation.client import Client
from simulation.job_edits import JobEdits
from simulation.library_use import LibraryUse
from simulation.violations import InvariantViolated
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
    """What was confirmed to a caller, and so must be stored at the end."""

    runs: dict[int, str] = field(default_factory=dict)
    canceled: set[int] = field(default_factory=set)
    retries: dict[int, int] = field(default_factory=dict)
    events: set[int] = field(default_factory=set)
    keys: dict[tuple[str, str], int] = field(default_factory=dict)
    rows: set[int] = field(default_factory=set)


SETTING_CHANGES = (
    ("worker_ttl_seconds", (4.0, 5.0)),
    ("lease_seconds", (4.0, 5.0, 7.0)),
    ("max_orphans", (2, 3)),
    ("poll_interval_seconds", (2.0, 5.0)),
)

SILENCE_LIMITS = (("worker_ttl_seconds", (4.0, 14.0)), ("worker_grace_seconds", (2.0, 4.0)))


class Operator(Client):
    def __init__(self, world: "World", name: str) -> None:
        super().__init__(world, name)
        self._runs = Runs(database=self.database, actor=name)
        self._events = Events(database=self.database)
        self._workers = Workers(database=self.database, actor=name)
        self._settings = Settings(database=self.database, actor=name)
        self._requests = 0
        self._others = (JobEdits(self), BulkCancels(self), LibraryUse(self))

    def run(self, acts: "tuple[str, ...]", every_seconds: float) -> None:
        """Act at random times, until the faults end."""
        random = self.world.random
        first = ["emit", "submit"]
        while not self.world.faults_ended:
            name = first.pop() if first else random.choice(acts)
            act = self._act(name)
            try:
                act()
            except (Conflict, NotFound, UsageError) as answer:
                self.world.coverage[f"an operator got the error: {answer.specific_code}"] += 1
            except Unreachable:
                self.world.coverage["an operator got no reply"] += 1
            self.world.scheduler.sleep(0.1 if first else random.random() * 2 * every_seconds)

    def _act(self, name: str) -> Callable[[], None]:
        acts = (getattr(one, name, None) for one in (self, *self._others))
        found: Callable[[], None] = next(act for act in acts if act is not None)
        return found

    # --- acts -----------------------------------------------------------------------------------

    def submit(self) -> None:
        """With an idempotency key it is repeated until a reply arrives, and makes one run."""
        random = self.world.random
        self._requests += 1
        if random.random() < 0.5:
            request = Request(job="asked", idempotency_key=f"{self.name}-{self._requests // 2}")
        else:
            request = Request(job="keyed", arguments={"to": random.choice("ab")})
        self.world.log(f"{self.name} submits a run of {request.job}")
        submission = self._until_reply(
            lambda: self._runs.submit(request), request.idempotency_key is not None
        )
        self.world.ledger.runs[submission.run_id] = request.job
        if request.idempotency_key is not None:
            self._check_same("run", request.idempotency_key, submission.run_id)

    def submit_tagged(self) -> None:
        self._submit_plain("tagged")

    def submit_scripted(self) -> None:
        self._submit_plain("scripted")

    def _submit_plain(self, job: str) -> None:
        self.world.log(f"{self.name} submits a run of {job}")
        self.world.ledger.runs[self._runs.submit(Request(job=job)).run_id] = job

    def emit(self) -> None:
        self._requests += 1
        key = f"{self.name}-{self._requests // 2}"
        self.world.log(f"{self.name} emits {key}")
        event, is_new = self._until_reply(
            lambda: self._events.emit("news", {"of": key}, dedupe_key=key), True
        )
        self.world.coverage["an event was emitted twice"] += not is_new
        self.world.ledger.events.add(event.id)
        self._check_same("event", key, event.id)

    def cancel(self) -> None:
        run_id = self._some_run(live=True)
        self.world.log(f"{self.name} cancels run {run_id}")
        is_canceled = self._runs.cancel(run_id).state.is_final
        if is_canceled:
            self.world.ledger.canceled.add(run_id)
        else:
            self.world.coverage["a cancel was requested"] += 1
        self.world.promises.stop_canceled(run_id, is_requested=not is_canceled)

    def retry(self) -> None:
        run_id = self._some_run(live=False)
        self.world.log(f"{self.name} retries run {run_id}")
        self.world.ledger.retries[run_id] = self._runs.retry(run_id).run_id

    def drain(self) -> None:
        node = self._some_worker()
        node.was_drained = True
        self._workers.drain(node.engine.worker.identity.id)

    def detach(self) -> None:
        worker_id = self._some_worker().engine.worker.identity.id
        self.world.log(f"{self.name} detaches {worker_id}")
        self._workers.detach(worker_id)

    def step_down(self) -> None:
        self.world.log(f"{self.name} ends the leader's term")
        self._workers.step_down()

    def change_settings(self) -> None:
        key, values = self.world.random.choice(SETTING_CHANGES)
        self.world.settings_changed_at = self.world.scheduler.now + 6.0
        self._settings.set(key, self.world.random.choice(values))
        self.world.coverage["settings were changed"] += 1

    def change_silence_limits(self) -> None:
        """Longer or shorter, while workers may be cut off: no missed deadline is excused."""
        random = self.world.random
        key, values = random.choice(SILENCE_LIMITS)
        value = random.choice(values)
        self.world.log(f"{self.name} sets {key} to {value}")
        self._settings.set(key, value)
        self.world.coverage["silence limits were changed"] += 1

    # --- helpers --------------------------------------------------------------------------------

    def _until_reply(self, ask: Callable, again: bool):  # type: ignore[no-untyped-def, type-arg]
        while True:
            try:
                return ask()
            except Unreachable:
                if not again or self.world.faults_ended:
                    raise
                self.world.scheduler.sleep(0.3)

    def _check_same(self, kind: str, key: str, answered: int) -> None:
        if self.world.ledger.keys.setdefault((kind, key), answered) != answered:
            raise InvariantViolated(f"the key {key} has made two {kind}s")

    def _some_run(self, *, live: bool) -> int:
        runs = self.world.invariants.runs
        runs = [run_id for run_id, run in runs.items() if run.state.is_final is not live]
        if not runs:
            raise NotFound("there is no such run")
        return self.world.random.choice(runs)

    def _some_worker(self) -> "Node":
        nodes = [node for node in self.world.nodes if node.role.work and not node.is_dead]
        if not nodes:
            raise NotFound("there is no worker")
        return self.world.random.choice(nodes)
