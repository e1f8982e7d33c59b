"""The right that each route needs, declared with the route: `right=Right.RUNS_READ`."""

from dataclasses import dataclass

from starlette.requests import Request

from tsuzuki.model.access import AnyRight
from tsuzuki.services.access.permissions import require


@dataclass(frozen=True)
class RequiredRight:
    """The right that a route needs. None: any principal may call it, or if it is public any request. With
    `is_monitoring` programs of a machine without users need no credentials."""

    right: AnyRight | None
    is_public: bool = False
    is_monitoring: bool = False

    @property
    def name(self) -> str:
        """As the OpenAPI document says it."""
        if self.right is not None:
            return str(self.right)
        return "public" if self.is_public else "authenticated"

    def check(self, request: Request) -> None:
        """Raise `NotPermitted` if the principal of the request has not the right."""
        if not self.is_public:
            principal = request.state.principal
            if self.right is not None:
                require(principal, self.right)


AUTHENTICATED = RequiredRight(None)
"""Any principal may call the route: it checks the right of each thing that it is asked for."""

PUBLIC = RequiredRight(None, is_public=True)
"""The route tells nothing that is not public."""


def monitoring(right: AnyRight) -> RequiredRight:
    """A principal with this right; but as long as there is no user, the programs that watch a process need no
    credentials for it on loopback."""
    return RequiredRight(right, is_monitoring=True)
