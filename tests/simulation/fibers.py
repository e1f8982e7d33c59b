"""Threads that take turns: who goes on is drawn, and time passes only when nobody can.

A fiber gives up its turn in `rest` and nowhere else. What it does between two rests happens at one moment
and undisturbed, so a simulation is the order of its turns and nothing besides.
"""

import threading
from collections.abc import Callable
from random import Random
from typing import Protocol

from greenlet import GreenletExit, getcurrent, greenlet

__all__ = ["Fiber", "GreenletExit", "TooBusy", "Turns"]


class Owner(Protocol):
    """What a fiber belongs to: while it is held up none of its fibers has a turn."""

    held_until: float


class Fiber:
    def __init__(self, name: str, owner: Owner, work: Callable[[], None]) -> None:
        self.name = name
        self.owner = owner
        self.wake_at = 0.0
        self.event: threading.Event | None = None
        self.done = threading.Event()
        self._work = work
        self.greenlet = greenlet(self._run)

    def _run(self) -> None:
        try:
            self._work()
        finally:
            self.done.set()

    def ready_at(self, now: float) -> float:
        """When it can go on: now, if what it waits for has happened."""
        event = self.event
        wake_at = now if event is not None and event.is_set() else self.wake_at
        held_until = self.owner.held_until
        return wake_at if wake_at > held_until else held_until


TURNS_MAX_PER_SECOND = 3_000
"""Of simulated time, all together. Whoever needs more than that goes round and round."""


class TooBusy(BaseException):
    """Somebody does not rest."""


class Turns:
    def __init__(self, random: Random) -> None:
        self.now = 0.0
        self._second = 0
        self._turns_in_second = 0
        self._random = random
        self._fibers: list[Fiber] = []
        self.current: Fiber | None = None
        self._hub = getcurrent()

    def spawn(self, name: str, owner: Owner, work: Callable[[], None]) -> Fiber:
        fiber = Fiber(name, owner, work)
        fiber.greenlet.parent = self._hub
        fiber.wake_at = self.now
        self._fibers.append(fiber)
        return fiber

    def rest(self, seconds: float, event: threading.Event | None = None) -> None:
        """Let others go on, for so long or until the event is set."""
        fiber = self.current
        if fiber is None or fiber.greenlet is not getcurrent():
            raise RuntimeError("only a fiber that has its turn can rest")
        fiber.wake_at = self.now + max(seconds, 0.0)
        fiber.event = event
        self._hub.switch()

    def run_until(self, is_over: Callable[[], bool], deadline: float) -> bool:
        """Give turns until it is over; false if it was not by then."""
        while not is_over():
            if self.now >= deadline:
                return False
            self._turn(deadline)
        return True

    def end_all_of(self, owner: Owner) -> None:
        """Its fibers end where they are, as threads do with their process."""
        mine = [fiber for fiber in self._fibers if fiber.owner is owner]
        self._fibers = [fiber for fiber in self._fibers if fiber.owner is not owner]
        for fiber in mine:
            if fiber.greenlet is not getcurrent():
                self._end(fiber)

    def end_everything(self) -> None:
        fibers, self._fibers = self._fibers, []
        for fiber in fibers:
            self._end(fiber)

    def shift(self, owner: Owner, seconds: float) -> None:
        """Its own time stood still for so long: whatever it waits for is later by that."""
        for fiber in self._fibers:
            if fiber.owner is owner:
                fiber.wake_at += seconds

    def _turn(self, deadline: float) -> None:
        now, soonest = self.now, deadline
        ready: list[Fiber] = []
        for fiber in self._fibers:
            at = fiber.ready_at(now)
            if at <= now:
                ready.append(fiber)
            elif at < soonest:
                soonest = at
        if not ready:
            self.now = soonest
            return
        fiber = ready[int(self._random.random() * len(ready))] if len(ready) > 1 else ready[0]
        self.current = fiber
        self._count()
        fiber.greenlet.switch()
        self.current = None
        if fiber.greenlet.dead and fiber in self._fibers:
            self._fibers.remove(fiber)

    def _count(self) -> None:
        if self._second != int(self.now):
            self._second, self._turns_in_second = int(self.now), 0
        self._turns_in_second += 1
        if self._turns_in_second > TURNS_MAX_PER_SECOND:
            raise TooBusy(f"nobody rests; the last one is {self.current and self.current.name}")

    def _end(self, fiber: Fiber) -> None:
        if fiber.greenlet:
            # Whoever ends it gets the turn back when it has unwound.
            fiber.greenlet.parent = getcurrent()
            fiber.greenlet.throw(GreenletExit)
        fiber.done.set()
