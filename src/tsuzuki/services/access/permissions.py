"""Whom a principal may act on: itself, or others if it manages access and has every right that they have."""

import re
from collections.abc import Collection

from tsuzuki.model.access import AnyRight, Principal, Right, Role
from tsuzuki.model.errors import NotPermitted, UsageError

NAME_LENGTH_MAX = 100
NAME_PATTERN = "[A-Za-z0-9](?:[A-Za-z0-9._@+-]*[A-Za-z0-9])?"
_NAME = re.compile(NAME_PATTERN)


def manages(by: Principal) -> bool:
    return by.may(Right.ACCESS_MANAGE)


def is_own(by: Principal, user_id: int | None) -> bool:
    return user_id is not None and user_id == by.user_id and by.may(Right.ACCESS_OWN)


def require(by: Principal, right: AnyRight) -> None:
    """Raise `NotPermitted`, with the scope or the role that is missing, if a principal has not a right."""
    if by.may(right):
        return
    raise NotPermitted(
        f"permission {right} is required",
        hint=f"The token is limited to other scopes; create one with the scope {right}."
        if by.role.has(right)
        else f"The role {by.role.value} does not have it.",
        code="right_missing",
    )


def require_grantable(
    by: Principal, role: Role, scopes: Collection[AnyRight] | None = None
) -> None:
    """Raise `NotPermitted` if the role, narrowed to the scopes, has a right that `by` has not."""
    if not by.may_grant(role, scopes):
        raise NotPermitted(
            f"{by.actor} cannot grant permissions it does not have: {_missing(by, role, scopes)}",
            hint="Choose a lower role, or scopes that you have.",
            code="grant_refused",
        )


def require_no_more(by: Principal, role: Role, scopes: Collection[AnyRight] | None = None) -> None:
    """Raise `NotPermitted` if a user or a token, which `by` wants to change, has a right that `by` has not."""
    if not by.may_grant(role, scopes):
        raise NotPermitted(
            f"{by.actor} cannot change an account or token with permissions it does not have: "
            f"{_missing(by, role, scopes)}",
            hint="Ask an admin to do it.",
            code="grant_refused",
        )


def _missing(by: Principal, role: Role, scopes: Collection[AnyRight] | None) -> str:
    granted = [right for right in (Right if scopes is None else scopes) if role.has(right)]
    missing = [right for right in granted if not by.may(right)]
    return ", ".join(sorted(missing)) or "permissions outside its scopes"


def check_name(name: str, *, what: str) -> str:
    """Raises `UsageError` for a name that a token or a user cannot have."""
    if len(name) <= NAME_LENGTH_MAX and _NAME.fullmatch(name):
        return name
    raise UsageError(
        f"{name[:NAME_LENGTH_MAX]!r} is not a valid {what} name",
        hint=f"Use up to {NAME_LENGTH_MAX} letters and digits, with . _ @ + - in between.",
        code=f"{what}_name",
    )
