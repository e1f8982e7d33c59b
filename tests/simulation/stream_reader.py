"""A client that follows the stream of changes: it reads pages now and then, gets disconnected, and resumes from its
last position.

The stream must deliver every move once, in the order of commits, whatever the clocks do. The simulation never prunes
history or restores a backup, so no position may be lost either.
"""

from typing import TYPE_CHECKING

from simulation.client import Client
from simulation.violations import InvariantViolated
from support.moving_clock import NOON
from tsuzuki.model.errors import Unreachable
from tsuzuki.model.run import Transition
from tsuzuki.services.changes import Changes, PositionLost
from tsuzuki.store.runs import changes

if TYPE_CHECKING:
    from simulation.world import World

EVERY_SECONDS = 0.7
PAGE_CHANGES = 3
DISCONNECTS = 0.15
"""Probability of a disconnect after each page."""


class StreamReader(Client):
    def __init__(self, world: "World") -> None:
        super().__init__(world, "reader")
        self._moves = world.invariants.moves
        self._position = str(changes.now(world.store.connection))
        self._received = 0
        self._last_at = NOON

    def has_every_move(self) -> bool:
        return self._received == len(self._moves)

    def run(self) -> None:
        """Resume again and again, each time like a new process that has only the written position."""
        while True:
            self.world.scheduler.sleep(self.world.random.random() * 2 * EVERY_SECONDS)
            try:
                self._catch_up()
            except Unreachable:
                self.world.coverage["a stream reader was disconnected"] += 1
            except PositionLost as problem:
                raise InvariantViolated(f"the stream lost the position {problem}") from problem

    def _catch_up(self) -> None:
        committed = len(self._moves)
        stream = Changes(database=self.database)
        known = stream.known(self._position)
        for page in stream.between(known, stream.now(), page_changes=PAGE_CHANGES):
            for change in page.changes:
                self._receive(change.transition)
            self._position = str(page.position)
            self._disconnect_sometimes()
        if self._received < committed:
            raise InvariantViolated(f"the stream left out {self._moves[self._received]}")

    def _receive(self, received: Transition) -> None:
        move = (received.run_id, received.version, received.to_state.value)
        expected = self._moves[self._received] if not self.has_every_move() else None
        if move != expected:
            raise InvariantViolated(f"the stream delivered {move}, the next move is {expected}")
        self._received += 1
        self.world.coverage["a stream followed a clock back"] += received.at < self._last_at
        self._last_at = received.at

    def _disconnect_sometimes(self) -> None:
        random = self.world.random
        if not self.world.faults_ended and random.random() < DISCONNECTS:
            self.disconnect(random.choice((0.5, 1.5, 3.0)), silently=random.random() < 0.3)
