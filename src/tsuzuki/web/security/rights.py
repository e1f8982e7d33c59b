"""The right that each route needs, declared with the route: `dependencies=[requires(Right.RUNS_READ)]`."""

from typing import Any

from fastapi import Depends
from starlette.requests import Request

from tsuzuki.model.access import AnyRight
from tsuzuki.services.access.permissions import require


class RequiredRight:
    """Declares the right of a route. None: any principal may call it, or if it is public any request. With
    `is_monitoring` programs of a machine without users need no credentials."""

    def __init__(
        self, right: AnyRight | None, *, is_public: bool = False, is_monitoring: bool = False
    ) -> None:
        self.right = right
        self.is_public = is_public
        self.is_monitoring = is_monitoring

    @property
    def name(self) -> str:
        """As the OpenAPI document says it."""
        if self.right is not None:
            return str(self.right)
        return "public" if self.is_public else "authenticated"

    async def __call__(self, request: Request) -> None:
        """Of a route that does not check by itself."""
        self.check(request)

    def check(self, request: Request) -> None:
        """Raise `NotPermitted` if the principal of the request has not the right."""
        if not self.is_public:
            principal = request.state.principal
            if self.right is not None:
                require(principal, self.right)


def requires(right: AnyRight) -> Any:
    """Only a principal with this right may call the route."""
    return Depends(RequiredRight(right))


def monitoring(right: AnyRight) -> Any:
    """As `requires`; but as long as there is no user, the programs that watch a process need no credentials for it on
    loopback."""
    return Depends(RequiredRight(right, is_monitoring=True))


def authenticated() -> Any:
    """Any principal may call the route: it checks the right of each thing that it is asked for."""
    return Depends(RequiredRight(None))


def public() -> Any:
    """The route tells nothing that is not public."""
    return Depends(RequiredRight(None, is_public=True))
