"""Sessions: browsers that signed in with a password.

A session ends after a time without requests, after a fixed time in any case, when it is ended, and with the password
or the right to sign in. The secret in the cookie is new at each sign-in.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tsuzuki.model.access import Principal
from tsuzuki.store.sql.database import Database

IDLE_SECONDS = 12 * 3600.0
LIFETIME_SECONDS = 7 * 86_400.0


@dataclass(frozen=True, kw_only=True)
class SignInPlace:
    """Where a sign-in comes from: the address of the client (not of a proxy), and what it calls itself."""

    address: str | None
    user_agent: str | None = None


@dataclass(frozen=True, kw_only=True)
class SessionView:
    """A session without its secret."""

    id: int
    user: str
    created_at: datetime
    last_seen_at: datetime
    expires_at: datetime
    """The latest end; it ends earlier without requests."""
    address: str | None
    user_agent: str | None

    def as_dict(self) -> dict[str, Any]:
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class SignedIn:
    """A new session; `secret` is for the cookie and stored nowhere."""

    principal: Principal
    session: SessionView
    secret: str = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class AuthenticatedSession:
    principal: Principal
    session: SessionView


class Sessions:
    def __init__(self, *, database: Database) -> None:
        self._database = database

    def sign_in(
        self, name: str, password: str, *, place: SignInPlace, replacing: str | None = None
    ) -> SignedIn:
        """Check a password and start a session; the one whose secret is `replacing` ends. Takes about a tenth of a
        second of processor time: call it off the event loop. Raises `NotAuthenticated` with the code `sign_in_refused`
        (the same words and time for an unknown user, a wrong password and a disabled user) or `sign_in_limited`
        (with `retry_after_seconds`)."""
        raise NotImplementedError

    def authenticate(self, secret: str) -> AuthenticatedSession:
        """Whose session it is. Raises `NotAuthenticated` with the code `session_unknown` or `session_expired`."""
        raise NotImplementedError

    def find(self, *, by: Principal, every_user: bool = False) -> list[SessionView]:
        """One's own live sessions, newest first; those of every user for a principal that manages access."""
        raise NotImplementedError

    def end(self, session_id: int, *, by: Principal) -> None:
        """End a session: one's own (sign out), or that of another user for a principal that manages access. Raises
        `NotFound`."""
        raise NotImplementedError

    def end_all(self, *, by: Principal, user: str | None = None, keep_own: bool = False) -> int:
        """End all sessions of a user (oneself unless named), with `keep_own` all but that of `by`. Answers how many
        ended."""
        raise NotImplementedError

    def live(self, session_ids: Collection[int]) -> frozenset[int]:
        """Those that still authenticate, in one statement: for streams, which end with theirs."""
        raise NotImplementedError
