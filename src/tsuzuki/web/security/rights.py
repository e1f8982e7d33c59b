"""The right that each route needs, declared with the route: `dependencies=[requires(Right.RUNS_READ)]`."""

from typing import Any

from fastapi import Depends
from starlette.requests import Request

from tsuzuki.model.access import Principal, Right
from tsuzuki.model.errors import NotPermitted


class RequiredRight:
    """Declares the right of a route; None for a route that every principal, or (`is_public`) any request may call."""

    def __init__(self, right: Right | None, *, is_public: bool = False) -> None:
        self.right = right
        self.is_public = is_public

    async def __call__(self, request: Request) -> None:
        """A second look, for a route that would not check by itself."""
        if self.right is not None:
            check_right(request.state.principal, self.right)


def requires(right: Right) -> Any:
    """Only a principal with this right may call the route."""
    return Depends(RequiredRight(right))


def authenticated() -> Any:
    """Any principal may call the route: what it is told depends on the rights that it has."""
    return Depends(RequiredRight(None))


def public() -> Any:
    """The route tells nothing that is not public."""
    return Depends(RequiredRight(None, is_public=True))


def check_right(principal: Principal, right: Right) -> None:
    """Raises `NotPermitted`."""
    if principal.may(right):
        return
    is_narrowed = principal.scopes is not None and right in principal.role.rights
    raise NotPermitted(
        f"this needs the right {right.value}",
        hint=f"The token is narrowed to other scopes; make one with the scope {right.value}."
        if is_narrowed
        else f"The role {principal.role.value} does not have it.",
        code="right_missing",
    )
