"""For whom a request acts: a bearer token, a session cookie, or the owner of a server that only this machine reaches.

Credentials that are sent must be right: a wrong token is refused, and never taken for a request without one. A request
that a proxy marked needs some in any case. A proxy need not mark any, so nothing but the owner mode `open` and the
metrics depends on that.
"""

from functools import partial
from typing import Protocol

from starlette.requests import HTTPConnection

from tsuzuki.model.access import Principal
from tsuzuki.model.errors import NotAuthenticated
from tsuzuki.web.security.refusal_log import note_refusal
from tsuzuki.web.security.session_cookie import session_secret
from tsuzuki.web.security.shared_lookup import SharedLookup

PROXY_HEADERS = (
    "forwarded",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-real-ip",
)
_AS_SENT = frozenset(name.encode("latin-1") for name in PROXY_HEADERS)


class Authenticator(Protocol):
    """Knows tokens and sessions. Each answer is None for what is unknown, expired or revoked."""

    def by_token(self, text: str) -> Principal | None: ...

    def by_session(self, secret: str) -> Principal | None: ...

    def without_credentials(self) -> Principal | None:
        """For a request of this machine that has no credentials; None if there must be some. May raise why."""
        ...

    def for_monitoring(self) -> Principal | None:
        """The same for a request that reads nothing but what the process counted."""
        ...


def bearer_token(connection: HTTPConnection) -> str | None:
    """The token of the request; an empty one if the header says something else."""
    header = connection.headers.get("authorization")
    if header is None:
        return None
    scheme, _, token = header.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


async def authenticate(
    connection: HTTPConnection, authenticator: Authenticator, *, is_monitoring: bool = False
) -> Principal:
    """The principal of a request. Raises the 401 that says how to get in."""
    token, session = bearer_token(connection), session_secret(connection)
    lookups: SharedLookup = connection.app.state.lookups
    if token is not None:
        look = partial(authenticator.by_token, token)
        found = await lookups.ask(("token", token), look) if token else None
        if found is None:
            note_refusal(connection, "token")
        return _require(found, "the token is unknown, expired or revoked")
    if session is not None:
        found = await lookups.ask(("session", session), partial(authenticator.by_session, session))
        return _require(found, "the session has ended")
    if any(name in _AS_SENT for name, _ in connection.headers.raw):
        return _require(None, "requests through a proxy require a token")
    if is_monitoring:
        found = await lookups.ask("monitoring", authenticator.for_monitoring)
    else:
        found = await lookups.ask("none", authenticator.without_credentials)
    return _require(found, "the request has no token")


def _require(principal: Principal | None, message: str) -> Principal:
    if principal is None:
        raise NotAuthenticated(message, hint="Send a token: Authorization: Bearer tsz_…")
    return principal
