"""Files of the processes of a simulated machine. What they tell may be wrong, but never both the process table and the
lock at the same time: that takes two independent mistakes.
"""

import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simulation.node import Node

LOOK_SECONDS = 0.3
"""How long it may take until the end of a process is noticed."""


class SimulatedProcessFile:
    def __init__(self, name: str, node: "Node") -> None:
        self.name = name
        self._node = node

    def is_out_of_process_table(self) -> bool:
        return self._node.is_dead or self._node.looks_dead

    def is_unlocked(self) -> bool:
        world = self._node.world
        if self._node.looks_dead and not self._node.is_dead:
            world.coverage["a live process was missing in the process table"] += 1
        if self._node.has_lost_lock and not self._node.is_dead:
            world.coverage["a live process had lost its lock"] += 1
            return True
        if self._node.is_dead and world.scheduler.now < self._node.commands_end_at:
            world.coverage["a command outlived its process"] += 1
            return False
        return self._node.is_dead

    def remove(self) -> None:
        """Its death is recorded."""
        world = self._node.world
        world.process_files.pop(self.name, None)
        world.recorded_deaths.add(self._node.name)
        world.coverage["a death was recorded"] += 1
        world.log(f"{self._node.name} is recorded as dead")


class SimulatedProcessFiles:
    """Of one node."""

    def __init__(self, node: "Node") -> None:
        self._node = node
        self._world = node.world
        self._name: str | None = None
        self._unlocked: frozenset[str] = frozenset()
        self._ending = threading.Event()

    def lock(self, name: str) -> None:
        self._name = name
        self._world.process_files[name] = self._node

    @contextmanager
    def look(
        self, names: Collection[str] | None = None
    ) -> Iterator[Sequence[SimulatedProcessFile]]:
        machine = self._node.machine
        if machine in self._world.machines_looked_at:
            yield ()
            return
        self._world.machines_looked_at.add(machine)
        try:
            yield [file for file in self._others() if names is None or file.name in names]
        finally:
            self._world.machines_looked_at.discard(machine)

    def wait(self, seconds: float) -> Collection[str]:
        self._node.clock.wait(self._ending, min(seconds, LOOK_SECONDS))
        before = self._unlocked
        self._unlocked = frozenset(file.name for file in self._others() if file.is_unlocked())
        return self._unlocked - before

    def wake(self) -> None:
        self._ending.set()

    def close(self) -> None:
        if self._name is not None:
            self._world.process_files.pop(self._name, None)

    def _others(self) -> list[SimulatedProcessFile]:
        return [
            SimulatedProcessFile(name, node)
            for name, node in self._world.process_files.items()
            if name != self._name and node.machine == self._node.machine
        ]
