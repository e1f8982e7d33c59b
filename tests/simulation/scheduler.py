"""A cooperative scheduler of fibers in simulated time.

A fiber yields in `sleep` and nowhere else; what it does between two of them is atomic and takes no simulated time.
Which of the ready fibers runs next is random (seeded). Time advances only when no fiber is ready.
"""

import threading
from collections.abc import Callable
from random import Random
from typing import Protocol

from greenlet import GreenletExit, getcurrent, greenlet

from simulation.violations import Livelock

__all__ = ["Fiber", "GreenletExit", "Scheduler"]


class Owner(Protocol):
    """What a fiber belongs to: while its owner is suspended, none of its fibers runs."""

    suspended_until: float


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


SWITCHES_MAX_PER_SECOND = 3_000
"""Per second of simulated time, all fibers together. More than that is a livelock."""


class Scheduler:
    def __init__(self, random: Random) -> None:
        self.now = 0.0
        self._second = 0
        self._switches_in_second = 0
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

    def sleep(self, seconds: float, event: threading.Event | None = None) -> None:
        """Yield, for so long or until the event is set."""
        fiber = self.current
        if fiber is None or fiber.greenlet is not getcurrent():
            raise RuntimeError("only the running fiber can sleep")
        fiber.wake_at = self.now + max(seconds, 0.0)
        fiber.event = event
        self._hub.switch()

    def run_until(self, is_over: Callable[[], bool], deadline: float) -> bool:
        """Run fibers until it is over; false if it was not by the deadline."""
        while not is_over():
            if self.now >= deadline:
                return False
            self._switch(deadline)
        return True

    def end_all_of(self, owner: Owner) -> None:
        """Kill its fibers where they are, as threads end with their process."""
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
        """Delay all its fibers: their waits stood still for so long."""
        for fiber in self._fibers:
            if fiber.owner is owner:
                fiber.wake_at += seconds

    def _switch(self, deadline: float) -> None:
        now, soonest = self.now, deadline
        ready: list[Fiber] = []
        # Inline, for it is done a million times in the tests: a fiber can run when its time has come or its event
        # is set, and its owner is not suspended.
        for fiber in self._fibers:
            at = fiber.wake_at
            if at > now and fiber.event is not None and fiber.event.is_set():
                at = now
            suspended_until = fiber.owner.suspended_until
            if suspended_until > at:
                at = suspended_until
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
            self._second, self._switches_in_second = int(self.now), 0
        self._switches_in_second += 1
        if self._switches_in_second > SWITCHES_MAX_PER_SECOND:
            raise Livelock(
                f"livelock: no fiber waits; the last is {self.current and self.current.name}"
            )

    def _end(self, fiber: Fiber) -> None:
        if fiber.greenlet:
            # Control returns here when it has unwound.
            fiber.greenlet.parent = getcurrent()
            fiber.greenlet.throw(GreenletExit)
        fiber.done.set()
