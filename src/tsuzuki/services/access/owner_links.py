"""Sign-in links for the owner of a server without users. Every process with access to the database can create one.

A link works once, expires soon, and starts a browser session. Once there is a user, links and their sessions are
refused, also by servers already running.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime

from tsuzuki.model import credentials
from tsuzuki.model.errors import Conflict, NotAuthenticated
from tsuzuki.store import audit
from tsuzuki.store.access import owner_links, users
from tsuzuki.store.sql.database import Connection, Database

LINK_SECONDS = 900.0
SESSION_SECONDS = 30 * 86_400.0


@dataclass(frozen=True, kw_only=True)
class NewOwnerLink:
    """`secret` is shown once and stored nowhere."""

    expires_at: datetime
    secret: str = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class OwnerSession:
    """The session of a browser that opened a link; `secret` is for its cookie and stored nowhere."""

    link_id: int
    secret: str = field(repr=False)


class OwnerLinks:
    def __init__(self, *, database: Database) -> None:
        self._database = database

    def create(self, *, actor: str) -> NewOwnerLink:
        """A new link, valid for a quarter of an hour. Raises `Conflict` (`users_exist`) if there is a user."""
        secret = credentials.new_session_secret()
        with self._database.write() as connection:
            users.lock(connection)
            if users.any_user(connection):
                raise Conflict(
                    "sign-in links work only on servers without users, and this one has users",
                    hint="Sign in with your name and password. Set a new password with: tsuzuki user passwd NAME",
                    code="users_exist",
                )
            owner_links.delete_expired(connection)
            link_id, expires_at = owner_links.add(
                connection,
                link_hash=credentials.hash_of(secret),
                lifetime_seconds=LINK_SECONDS,
                actor=actor,
            )
            _note(connection, "owner_link.create", link_id, actor)
        return NewOwnerLink(expires_at=expires_at, secret=secret)

    def open(self, secret: str, *, actor: str, replacing: str | None = None) -> OwnerSession:
        """Use a link up and start a session; the one whose secret is `replacing` ends. Raises `NotAuthenticated`
        with the code `owner_link_refused` for a link that is wrong, opened before or expired."""
        new = credentials.new_owner_secret()
        with self._database.write() as connection:
            users.lock(connection)
            link_id = owner_links.open_link(
                connection,
                credentials.hash_of(secret),
                session_hash=credentials.hash_of(new),
                lifetime_seconds=SESSION_SECONDS,
            )
            if link_id is None:
                raise NotAuthenticated(
                    "this link was already used or has expired",
                    hint="Print a new one with: tsuzuki web link",
                    code="owner_link_refused",
                )
            _note(connection, "owner_link.open", link_id, actor)
            before = owner_links.with_session(connection, credentials.hash_of(replacing or ""))
            if before is not None and owner_links.end(connection, before):
                _note(connection, "owner_link.end", before, actor)
        return OwnerSession(link_id=link_id, secret=new)

    def authenticate(self, secret: str) -> int | None:
        """The id of the link whose session this is; None if it is none, or has ended."""
        with self._database.single_read() as connection:
            return owner_links.with_session(connection, credentials.hash_of(secret))

    def end(self, link_id: int, *, actor: str) -> None:
        """End the session of a link (sign out)."""
        with self._database.write() as connection:
            if owner_links.end(connection, link_id):
                _note(connection, "owner_link.end", link_id, actor)

    def live(self, link_ids: Collection[int]) -> frozenset[int]:
        """Those whose session still authenticates, in one statement."""
        if not link_ids:
            return frozenset()
        with self._database.read() as connection:
            return owner_links.live(connection, link_ids)


def _note(connection: Connection, action: str, link_id: int, actor: str) -> None:
    audit.record(
        connection,
        actor=actor,
        action=action,
        object_type="owner_link",
        object_id=str(link_id),
    )
