"""A run as a few lines of Python know it, to hold the database against."""

from dataclasses import dataclass, field
from random import Random
from typing import Any

from tsuzuki.model.states import Actor, RunState


def off_by(chance: Random) -> int:
    """Mostly nothing; now and then a step beside the truth."""
    return chance.choice([-1, 1]) if chance.random() < 0.1 else 0


@dataclass
class Life:
    """What a run is and how it came there."""

    state: RunState = RunState.PENDING
    version: int = 1
    worker: str | None = None
    epoch: int | None = None
    attempt: int = 1
    orphans: int = 0
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
            self.processed,
        )
