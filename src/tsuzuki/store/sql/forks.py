"""What a forked child must not share with its parent, such as connections and locks (`gunicorn --preload`).

A connection that two processes use mixes up their answers, and a lock that another thread of the parent held at the
fork is never released in the child. So the child starts with none of them.
"""

import os
from typing import Protocol
from weakref import WeakSet


class ForkAware(Protocol):
    def forget_parent(self) -> None:
        """Called in a forked child before any code that it executes: drop what belongs to the parent, and close
        nothing, because closing would end the parent's sessions."""


_known: WeakSet[ForkAware] = WeakSet()


def on_fork(one: ForkAware) -> None:
    """Call `forget_parent` of this object in every child forked from now on."""
    _known.add(one)


def _in_child() -> None:
    for one in list(_known):
        one.forget_parent()


os.register_at_fork(after_in_child=_in_child)
