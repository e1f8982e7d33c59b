"""A service that acts for an actor, and the same service for another one."""

from copy import copy
from typing import Self


class ActingService:
    """What it changes is audited under the name of its actor."""

    _actor: str

    def acting_as(self, actor: str) -> Self:
        """The same for another actor. All else is shared."""
        other = copy(self)
        vars(other)["_actor"] = actor
        return other
