"""Who may do what: rights, the roles that have them, and the principal that a request acts for.

A route and a tool declare one right. A principal has the rights of its role; a token narrows them to its
scopes, and never widens them. What has no declared right is refused.
"""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType


class Right(StrEnum):
    """What may be asked of the product; also the scopes of a token."""

    JOBS_READ = "jobs:read"
    JOBS_OPERATE = "jobs:operate"
    """Enable, disable and run jobs."""
    JOBS_WRITE = "jobs:write"
    """Create, edit and delete definitions, and their feeds: what a definition says is executed."""
    RUNS_READ = "runs:read"
    RUNS_OPERATE = "runs:operate"
    """Cancel and retry, one by one or in bulk; acknowledge failures."""
    EVENTS_READ = "events:read"
    EVENTS_EMIT = "events:emit"
    WORKERS_READ = "workers:read"
    WORKERS_OPERATE = "workers:operate"
    """Drain and detach workers, let the leader step down."""
    COLLECTORS_READ = "collectors:read"
    COLLECTORS_OPERATE = "collectors:operate"
    """Collect, retry, reset, approve, requeue; add and remove targets."""
    CODE_READ = "code:read"
    CODE_BUILD = "code:build"
    SETTINGS_READ = "settings:read"
    SETTINGS_WRITE = "settings:write"
    AUDIT_READ = "audit:read"
    ACCESS_OWN = "access:own"
    """One's own sessions, tokens and password."""
    ACCESS_MANAGE = "access:manage"
    """Users, and the tokens and sessions of others."""


class OwnerMode(StrEnum):
    """How a server on loopback knows its owner while there is no user."""

    LINK = "link"
    """By the session that a one-time link started, or a token."""
    OPEN = "open"
    """Not at all: every request of this machine acts for the owner."""


class Role(StrEnum):
    """Each role has the rights of the one before it."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"

    @property
    def rights(self) -> frozenset[Right]:
        return _RIGHTS[self]

    def limited_to(self, other: "Role") -> "Role":
        """The lower one of both."""
        return min(self, other, key=list(Role).index)


_VIEWER = frozenset(right for right in Right if right.endswith(":read")) - {
    Right.AUDIT_READ,
    Right.SETTINGS_READ,
    Right.CODE_READ,
} | {Right.ACCESS_OWN}
_OPERATOR = _VIEWER | {
    Right.SETTINGS_READ,
    Right.AUDIT_READ,
    Right.CODE_READ,
    Right.CODE_BUILD,
    Right.JOBS_OPERATE,
    Right.RUNS_OPERATE,
    Right.EVENTS_EMIT,
    Right.WORKERS_OPERATE,
    Right.COLLECTORS_OPERATE,
}
_RIGHTS = MappingProxyType(
    {Role.VIEWER: _VIEWER, Role.OPERATOR: _OPERATOR, Role.ADMIN: frozenset(Right)}
)


@dataclass(frozen=True, kw_only=True)
class Principal:
    """For whom a request acts. `actor` is what the audit log stores."""

    actor: str
    role: Role
    scopes: frozenset[Right] | None = None
    """What a token is narrowed to; None: everything the role has."""
    user_id: int | None = None
    """The user it acts for: whose sessions, tokens and password are its own."""
    token_id: str | None = None
    """The token that it was authenticated by."""
    session_id: int | None = None
    """The session that it was authenticated by."""
    owner_link_id: int | None = None
    """The link that started the session of an owner, which it was authenticated by."""

    @property
    def identity(self) -> str:
        """By what it is told from others. Names are given again, to other users and tokens; ids are not."""
        if self.token_id is not None:
            return f"token {self.token_id}"
        return self.actor if self.user_id is None else f"user {self.user_id}"

    @property
    def has_session(self) -> bool:
        """Whether it was authenticated by a session, of a user or an owner, which can be ended."""
        return self.session_id is not None or self.owner_link_id is not None

    @property
    def rights(self) -> frozenset[Right]:
        rights = self.role.rights
        return rights if self.scopes is None else rights & self.scopes

    def may(self, right: Right) -> bool:
        return right in self.rights

    def may_grant(self, role: Role, scopes: Collection[Right] | None) -> bool:
        """Whether it may make a token or a user with these rights: never more than it has itself."""
        granted = role.rights if scopes is None else role.rights & frozenset(scopes)
        return granted <= self.rights
