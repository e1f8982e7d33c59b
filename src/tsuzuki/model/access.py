"""Who may do what: rights, the roles that have them, and the principal that a request acts for.

A route and a tool declare one right. A principal has the rights of its role; a token narrows them to its
scopes, and never widens them. What has no declared right is refused.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Self, TypeAlias


class Role(StrEnum):
    """Each role has the rights of the one before it."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"

    def has(self, right: "AnyRight") -> bool:
        return self.includes(right.role)

    def includes(self, other: "Role") -> bool:
        """Whether it has all rights of the other role."""
        return self.limited_to(other) is other

    def limited_to(self, other: "Role") -> "Role":
        """The lower one of both."""
        return min(self, other, key=list(Role).index)


class Right(StrEnum):
    """What may be asked of the engine; also the scopes of a token. `role` is the lowest role that has the right."""

    role: Role
    _value_: str

    def __new__(cls, name: str, role: Role) -> Self:
        right = str.__new__(cls, name)
        right._value_, right.role = name, role
        return right

    JOBS_READ = "jobs:read", Role.VIEWER
    JOBS_OPERATE = "jobs:operate", Role.OPERATOR
    """Enable, disable and run jobs."""
    JOBS_WRITE = "jobs:write", Role.ADMIN
    """Create, edit and delete definitions: what a definition says is executed."""
    RUNS_READ = "runs:read", Role.VIEWER
    RUNS_OPERATE = "runs:operate", Role.OPERATOR
    """Cancel and retry, one by one or in bulk; acknowledge failures."""
    EVENTS_READ = "events:read", Role.VIEWER
    EVENTS_EMIT = "events:emit", Role.OPERATOR
    WORKERS_READ = "workers:read", Role.VIEWER
    WORKERS_OPERATE = "workers:operate", Role.OPERATOR
    """Drain and detach workers, let the leader step down."""
    COLLECTORS_READ = "collectors:read", Role.VIEWER
    COLLECTORS_OPERATE = "collectors:operate", Role.OPERATOR
    """Collect, retry, reset, approve, requeue; add and remove targets."""
    SETTINGS_READ = "settings:read", Role.OPERATOR
    SETTINGS_WRITE = "settings:write", Role.ADMIN
    AUDIT_READ = "audit:read", Role.OPERATOR
    ACCESS_OWN = "access:own", Role.VIEWER
    """One's own sessions, tokens and password."""
    ACCESS_MANAGE = "access:manage", Role.ADMIN
    """Users, and the tokens and sessions of others."""


class CollectorRight(str):
    """A right that a collector adds: `CollectorRight("code:read", Role.OPERATOR)`. `role` is the lowest role that has
    the right."""

    __slots__ = ("role",)
    role: Role

    def __new__(cls, name: str, role: Role) -> Self:
        right = super().__new__(cls, name)
        right.role = role
        return right

    def __getnewargs__(self) -> tuple[str, Role]:  # type: ignore[override]  # a copy keeps the role
        return str(self), self.role


AnyRight: TypeAlias = Right | CollectorRight


class OwnerMode(StrEnum):
    """How a server on loopback knows its owner while there is no user."""

    LINK = "link"
    """By the session that a one-time link started, or a token."""
    OPEN = "open"
    """Not at all: every request of this machine acts for the owner."""


@dataclass(frozen=True, kw_only=True)
class Principal:
    """For whom a request acts. `actor` is what the audit log stores."""

    actor: str
    role: Role
    scopes: frozenset[str] | None = None
    """Names of the rights that a token is narrowed to; None: everything the role has."""
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

    def may(self, right: AnyRight) -> bool:
        return self.role.has(right) and (self.scopes is None or right in self.scopes)

    def rights_among(self, known: Iterable[AnyRight]) -> frozenset[AnyRight]:
        return frozenset(right for right in known if self.may(right))

    def may_grant(self, role: Role, scopes: Collection[AnyRight] | None) -> bool:
        """Whether it may make a token or a user with these rights: never more than it has itself."""
        if scopes is None:
            return self.scopes is None and self.role.includes(role)
        return all(self.may(right) for right in scopes if role.has(right))
