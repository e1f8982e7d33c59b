"""Sessions: browsers that signed in with a password.

A session ends after a time without requests, after a fixed time in any case, when it is ended, when the password
changes, and when the user is disabled or removed. Its secret is new at each sign-in. Its rights are those that the
user has at the moment of a request.
"""

from collections.abc import Collection
from dataclasses import dataclass, field

from tsuzuki.model import credentials
from tsuzuki.model.access import Principal, Right
from tsuzuki.model.errors import NotAuthenticated, NotFound
from tsuzuki.services.access.last_use import LastUse
from tsuzuki.services.access.passwords import Passwords
from tsuzuki.services.access.permissions import is_own, manages, require, require_no_more
from tsuzuki.services.access.sign_in_limits import (
    SignInKeys,
    count_attempt,
    keys_of,
    note_success,
)
from tsuzuki.store import audit
from tsuzuki.store.access import sessions, users
from tsuzuki.store.access.sessions import Session
from tsuzuki.store.access.users import User
from tsuzuki.store.sql.database import Connection, Database

__all__ = [
    "AuthenticatedSession",
    "Session",
    "Sessions",
    "SignInPlace",
    "SignedIn",
]

IDLE_SECONDS = 12 * 3600.0
LIFETIME_SECONDS = 7 * 86_400.0
_SHOWN_MAX = 300
"""Characters that are kept of what a browser calls itself, and of an address."""


@dataclass(frozen=True, kw_only=True)
class SignInPlace:
    """Where a sign-in comes from: the address of the client (not of a proxy), and what it calls itself."""

    address: str | None
    user_agent: str | None = None


@dataclass(frozen=True, kw_only=True)
class AuthenticatedSession:
    principal: Principal
    session: Session


@dataclass(frozen=True, kw_only=True)
class SignedIn(AuthenticatedSession):
    """A new session; `secret` is for the cookie and stored nowhere."""

    secret: str = field(repr=False)


class Sessions:
    def __init__(
        self,
        *,
        database: Database,
        passwords: Passwords,
        idle_seconds: float = IDLE_SECONDS,
        lifetime_seconds: float = LIFETIME_SECONDS,
    ) -> None:
        self._database = database
        self._passwords = passwords
        self._idle_seconds = idle_seconds
        self._lifetime_seconds = lifetime_seconds
        self._last_seen: LastUse[int] = LastUse(self._write_seen)

    def sign_in(
        self, name: str, password: str, *, place: SignInPlace, replacing: str | None = None
    ) -> SignedIn:
        """Check a password and start a session; the one whose secret is `replacing` ends. Takes about a tenth of a
        second of processor time: call it off the event loop. Raises `NotAuthenticated` with the code `sign_in_refused`
        (the same words and time for an unknown user, a wrong password and a disabled user) or `sign_in_limited`
        (with `retry_after_seconds`)."""
        keys = keys_of(name, place.address)
        with self._database.write() as connection:
            limited = count_attempt(self._database, connection, keys)
            user = _user_named(connection, name)
            if limited is not None and limited.is_first:
                _note_refusal(connection, user, place, limited.error)
        if limited is not None:
            raise limited.error
        checked = self._passwords.check(password, user.password_hash if user else None)
        if user is None or not checked.is_right:
            with self._database.write() as connection:
                _note_refusal(connection, user, place, refusal := _refused())
            raise refusal
        secret = credentials.new_session_secret()
        with self._database.write() as connection:
            if not users.note_sign_in(connection, user, checked.password_hash):
                raise _refused()
            session = self._start(connection, user, place, secret, keys)
            self._end_replaced(connection, replacing)
        return SignedIn(principal=_principal(session), session=session, secret=secret)

    def authenticate(self, secret: str) -> AuthenticatedSession:
        """Whose session it is. Raises `NotAuthenticated` with the code `session_unknown` or `session_expired`."""
        session = self._with_secret(secret)
        if session is None:
            raise _not_signed_in("session_unknown")
        if not session.is_live:
            raise _not_signed_in("session_expired")
        if session.is_seen_outdated:
            self._last_seen.note(session.id)
        return AuthenticatedSession(principal=_principal(session), session=session)

    def find(self, *, by: Principal, every_user: bool = False) -> list[Session]:
        """One's own live sessions, newest first; those of every user for a principal that manages access."""
        require(by, Right.ACCESS_MANAGE if every_user else Right.ACCESS_OWN)
        if not every_user and by.user_id is None:
            return []
        with self._database.read() as connection:
            user_id = None if every_user else by.user_id
            return sessions.find(connection, idle_seconds=self._idle_seconds, user_id=user_id)

    def end(self, session_id: int, *, by: Principal) -> None:
        """End a session: one's own (sign out), or that of another user for a principal that manages access. Raises
        `NotFound`."""
        with self._database.write() as connection:
            found = sessions.get(connection, session_id, idle_seconds=self._idle_seconds)
            may_end = found is not None and (manages(by) or is_own(by, found.user_id))
            if found is not None and may_end and not is_own(by, found.user_id):
                require_no_more(by, found.user_role)
            if found is None or not may_end or not sessions.end(connection, session_id):
                raise NotFound(f"there is no session {session_id}", code="session_not_found")
            _note_end(connection, by.actor, found.id, found.user)

    def end_all(self, *, by: Principal, user: str | None = None, keep_own: bool = False) -> int:
        """End all sessions of a user (oneself unless named), with `keep_own` all but that of `by`. Answers how many
        ended."""
        with self._database.write() as connection:
            found = _sought_user(connection, by, user)
            except_id = by.session_id if keep_own else None
            ended = sessions.end_all(connection, found.id, except_id=except_id)
            for session_id in ended:
                _note_end(connection, by.actor, session_id, found.name)
        return len(ended)

    def of(self, principal: Principal) -> Session | None:
        """The session that a principal was authenticated by; None if by none."""
        if principal.session_id is None:
            return None
        with self._database.read() as connection:
            return sessions.get(connection, principal.session_id, idle_seconds=self._idle_seconds)

    def live(self, session_ids: Collection[int]) -> frozenset[int]:
        """Those (by `Principal.session_id`) that still authenticate, in one statement: for streams, which end with
        theirs."""
        if not session_ids:
            return frozenset()
        with self._database.read() as connection:
            return sessions.live(connection, session_ids, idle_seconds=self._idle_seconds)

    def wait_for_writes(self) -> None:
        """Until the times of the last requests are written."""
        self._last_seen.wait()

    def _with_secret(self, secret: str) -> Session | None:
        with self._database.single_read() as connection:
            return sessions.with_hash(
                connection, credentials.hash_of(secret), idle_seconds=self._idle_seconds
            )

    def _start(
        self,
        connection: Connection,
        user: User,
        place: SignInPlace,
        secret: str,
        keys: SignInKeys,
    ) -> Session:
        sessions.delete_expired(connection, idle_seconds=self._idle_seconds)
        session_id = sessions.add(
            connection,
            secret_hash=credentials.hash_of(secret),
            user_id=user.id,
            lifetime_seconds=self._lifetime_seconds,
            address=_cut(place.address),
            user_agent=_cut(place.user_agent),
        )
        note_success(connection, keys)
        session = sessions.get(connection, session_id, idle_seconds=self._idle_seconds)
        if session is None:
            raise _refused()
        audit.record(
            connection,
            actor=f"user:{user.name}",
            action="session.start",
            object_type="session",
            object_id=str(session_id),
            after={"user": user.name, "address": session.address},
        )
        return session

    def _end_replaced(self, connection: Connection, secret: str | None) -> None:
        if secret is None:
            return
        secret_hash = credentials.hash_of(secret)
        before = sessions.with_hash(connection, secret_hash, idle_seconds=self._idle_seconds)
        if before is not None and sessions.end(connection, before.id):
            _note_end(connection, f"user:{before.user}", before.id, before.user)

    def _write_seen(self, session_id: int) -> None:
        with self._database.statement() as connection:
            sessions.note_seen(connection, session_id)


def _user_named(connection: Connection, name: str) -> User | None:
    """Names are of ASCII: any other text is no user, and is not asked for."""
    return users.named(connection, name.lower()) if name.isascii() and name.isprintable() else None


def _sought_user(connection: Connection, by: Principal, name: str | None) -> User:
    if name is None:
        require(by, Right.ACCESS_OWN)
        found = users.get(connection, by.user_id) if by.user_id is not None else None
    else:
        found = _user_named(connection, name)
        if found is not None and not is_own(by, found.id):
            require(by, Right.ACCESS_MANAGE)
            require_no_more(by, found.role)
    if found is None:
        raise NotFound("there is no such user", hint="See: tsuzuki user ls", code="user_not_found")
    return found


def _principal(session: Session) -> Principal:
    return Principal(
        actor=f"user:{session.user}",
        role=session.user_role,
        user_id=session.user_id,
        session_id=session.id,
    )


def _cut(text: str | None) -> str | None:
    return None if text is None else text[:_SHOWN_MAX]


def _refused() -> NotAuthenticated:
    return NotAuthenticated(
        "wrong name or password",
        hint="An admin can set a new password with: tsuzuki user passwd NAME",
        code="sign_in_refused",
    )


def _not_signed_in(code: str) -> NotAuthenticated:
    return NotAuthenticated("this session has ended", hint="Sign in again.", code=code)


def _note_refusal(
    connection: Connection, user: User | None, place: SignInPlace, refusal: NotAuthenticated
) -> None:
    """A name that no user has is not stored: it may be a password that was typed into the wrong field."""
    from tsuzuki.engine.log import log  # noqa: PLC0415 -- slow to load, and rarely needed

    name = "unknown" if user is None else user.name
    log.warning(refusal.specific_code, user=name, address=place.address)
    audit.record(
        connection,
        actor="anonymous",
        action="session.refuse",
        object_type="user",
        object_id=name,
        after={"address": _cut(place.address), "code": refusal.specific_code},
    )


def _note_end(connection: Connection, actor: str, session_id: int, user: str) -> None:
    audit.record(
        connection,
        actor=actor,
        action="session.end",
        object_type="session",
        object_id=str(session_id),
        before={"user": user},
    )
