"""The authenticator of a real server: tokens and sessions of the database, and the owner of a machine without users."""

from dataclasses import replace

from tsuzuki.model.access import OwnerMode, Principal, Right, Role
from tsuzuki.model.credentials import is_owner_secret
from tsuzuki.model.errors import NotAuthenticated
from tsuzuki.wiring.application import Application


class AccessAuthenticator:
    """Without any user a server that only this machine reaches may act for its owner, who reads the database anyway:
    for the session that a link started, or, if its owner mode is open, for every request. With the first user each
    request needs other credentials. `owner` is None for a server that others reach."""

    def __init__(
        self, application: Application, *, owner: str | None, owner_mode: OwnerMode
    ) -> None:
        self._tokens = application.tokens
        self._sessions = application.sessions
        self._users = application.users
        self._owner_links = application.owner_links
        self._owner = Principal(actor=owner, role=Role.ADMIN) if owner else None
        self._owner_mode = owner_mode

    def by_token(self, text: str) -> Principal | None:
        try:
            return self._tokens.authenticate(text)
        except NotAuthenticated:
            return None

    def by_session(self, secret: str) -> Principal | None:
        if is_owner_secret(secret):
            return self._by_owner_session(secret)
        try:
            return self._sessions.authenticate(secret).principal
        except NotAuthenticated:
            return None

    def without_credentials(self) -> Principal | None:
        if self._owner is None or self._users.any():
            return None
        if self._owner_mode is OwnerMode.OPEN:
            return self._owner
        raise NotAuthenticated(
            "not signed in, and the request has no token",
            hint="Print a sign-in link with: tsuzuki web link. Programs send a token "
            "(Authorization: Bearer tsz_…), created with: tsuzuki token create NAME",
            code="owner_link_needed",
        )

    def for_monitoring(self) -> Principal | None:
        if self._owner is None or self._users.any():
            return None
        return replace(self._owner, role=Role.VIEWER, scopes=frozenset({Right.WORKERS_READ}))

    def _by_owner_session(self, secret: str) -> Principal | None:
        link_id = None if self._owner is None else self._owner_links.authenticate(secret)
        if self._owner is None or link_id is None:
            return None
        return replace(self._owner, owner_link_id=link_id)
