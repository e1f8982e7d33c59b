"""Whether the credentials that streams were opened with are still valid, asked for all of them at once."""

from collections.abc import Collection
from dataclasses import dataclass

from starlette.requests import HTTPConnection

from tsuzuki.model.access import Principal
from tsuzuki.web.security.authentication import Authenticator, bearer_token
from tsuzuki.web.security.session_cookie import session_secret
from tsuzuki.wiring.application import Application


@dataclass(frozen=True, kw_only=True)
class Credentials:
    """What a stream was opened with: a token, a session of a user or an owner, or nothing but the machine
    (`is_owner`)."""

    actor: str
    token_id: str | None = None
    session_id: int | None = None
    owner_link_id: int | None = None
    is_owner: bool = False


def credentials_of(connection: HTTPConnection, principal: Principal) -> Credentials:
    sent = (bearer_token(connection), session_secret(connection))
    return Credentials(
        actor=principal.actor,
        token_id=principal.token_id,
        session_id=principal.session_id,
        owner_link_id=principal.owner_link_id,
        is_owner=sent == (None, None),
    )


class LiveCredentials:
    def __init__(self, application: Application, authenticator: Authenticator) -> None:
        self._tokens = application.tokens
        self._sessions = application.sessions
        self._owner_links = application.owner_links
        self._authenticator = authenticator

    def live(self, asked: Collection[Credentials]) -> frozenset[Credentials]:
        """Those that still authenticate: three statements at most, however many are asked for."""
        tokens = self._tokens.live({one.token_id for one in asked if one.token_id is not None})
        sessions = self._sessions.live(
            {one.session_id for one in asked if one.session_id is not None}
        )
        links = self._owner_links.live(
            {one.owner_link_id for one in asked if one.owner_link_id is not None}
        )
        has_owner = any(one.is_owner for one in asked)
        owner = self._authenticator.without_credentials() if has_owner else None
        return frozenset(
            one
            for one in asked
            if (one.token_id is None or one.token_id in tokens)
            and (one.session_id is None or one.session_id in sessions)
            and (one.owner_link_id is None or one.owner_link_id in links)
            and (not one.is_owner or owner is not None)
        )
