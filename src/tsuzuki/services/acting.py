"""Services whose changes are audited under the name of an actor."""

from copy import copy
from typing import Self


class ActingService:
    """A service that is given the `actor` it acts for, or that calls such services."""

    _actor: str

    def acting_as(self, actor: str) -> Self:
        """A copy that acts for another actor, as do the acting services that it uses. All else is shared."""
        other = copy(self)
        for name, value in vars(self).items():
            if isinstance(value, ActingService):
                vars(other)[name] = value.acting_as(actor)
        vars(other)["_actor"] = actor
        return other
