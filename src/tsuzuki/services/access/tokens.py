"""Tokens: credentials of programs, with a role, scopes and an expiry.

A token acts with the rights of its role, narrowed to its scopes. One that a user made has never more rights than that
user has now, and ends with the user.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tsuzuki.model.access import Principal, Right, Role
from tsuzuki.store.sql.database import Database

DAY_SECONDS = 86_400.0
LIFETIME_DEFAULT_SECONDS = 90 * DAY_SECONDS


@dataclass(frozen=True, kw_only=True)
class TokenView:
    """A token without its secret. `user` is the name of the user that it belongs to."""

    id: str
    name: str
    role: Role
    scopes: frozenset[Right] | None
    user: str | None
    created_at: datetime
    created_by: str
    expires_at: datetime
    last_used_at: datetime | None
    revoked_at: datetime | None
    revoked_by: str | None
    state: str
    """`live`, `expired` or `revoked`."""

    def as_dict(self) -> dict[str, Any]:
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class NewToken:
    """A token that was created; `text` is shown once and stored nowhere."""

    token: TokenView
    text: str = field(repr=False)


class Tokens:
    def __init__(self, *, database: Database) -> None:
        self._database = database

    def create(
        self,
        name: str,
        *,
        by: Principal,
        role: Role,
        scopes: Collection[Right] | None = None,
        expires_in_seconds: float = LIFETIME_DEFAULT_SECONDS,
    ) -> NewToken:
        """Create a token that belongs to the user of `by`. Raises `NotPermitted` if it would have more rights than
        `by` has, `Conflict` if a token of that name is not revoked, `UsageError` for a name, scope or expiry."""
        raise NotImplementedError

    def find(self, *, by: Principal, with_revoked: bool = False) -> list[TokenView]:
        """All tokens for a principal that manages access, else those of its own user; oldest first."""
        raise NotImplementedError

    def revoke(self, token: str, *, by: Principal) -> TokenView:
        """Revoke a token by its id (the first part of it) or its name; it is refused from now on. Raises `NotFound`,
        also for a token that `by` may not see, and `Conflict` if it was revoked before."""
        raise NotImplementedError

    def authenticate(self, text: str) -> Principal:
        """The principal that a token stands for. Raises `NotAuthenticated` (a `NotPermitted`) with the code
        `token_unknown`, `token_expired` or `token_revoked`."""
        raise NotImplementedError

    def live(self, token_ids: Collection[str]) -> frozenset[str]:
        """Those of the tokens that still authenticate, in one statement: for streams, which end with theirs."""
        raise NotImplementedError
