"""The authenticator of a real server: tokens and sessions of the database, and the owner of a machine without users."""

from tsuzuki.model.access import Principal, Role
from tsuzuki.model.errors import NotAuthenticated
from tsuzuki.wiring.application import Application


class AccessAuthenticator:
    """Without any user a server that only this machine reaches acts for its owner, who reads the database anyway.
    With the first user each request needs credentials."""

    def __init__(self, application: Application, *, owner: str, is_loopback: bool) -> None:
        self._tokens = application.tokens
        self._sessions = application.sessions
        self._users = application.users
        self._owner = Principal(actor=owner, role=Role.ADMIN) if is_loopback else None

    def by_token(self, text: str) -> Principal | None:
        try:
            return self._tokens.authenticate(text)
        except NotAuthenticated:
            return None

    def by_session(self, secret: str) -> Principal | None:
        try:
            return self._sessions.authenticate(secret).principal
        except NotAuthenticated:
            return None

    def without_credentials(self) -> Principal | None:
        return None if self._owner is None or self._users.any() else self._owner
