"""A reference model of a run, to compare the database with."""

from dataclasses import dataclass, field
from random import Random
from typing import Any

from tsuzuki.model.states import Actor, RunState


def off_by(random: Random) -> int:
    """Mostly 0; sometimes -1 or 1, for a stale version or epoch."""
    return random.choice([-1, 1]) if random.random() < 0.1 else 0


@dataclass
class RunModel:
    """The state of a run, and the moves that led to it."""

    state: RunState = RunState.PENDING
    version: int = 1
    worker: str | None = None
    epoch: int | None = None
    attempt: int = 1
    orphans: int = 0
    orphans_free: int = 0
    processed: int = 0
    assigned_at: float = 0.0
    path: list[tuple[RunState, RunState, Actor]] = field(default_factory=list)

    def move(self, target: RunState, actor: Actor) -> None:
        self.path.append((self.state, target, actor))
        self.state = target
        self.version += 1

    def row(self) -> tuple[Any, ...]:
        return (
            self.state.value,
            self.version,
            self.worker,
            self.epoch,
            self.attempt,
            self.orphans,
            self.orphans_free,
            self.processed,
        )
