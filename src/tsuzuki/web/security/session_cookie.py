"""The cookie of a session: named after the installation, because a browser sends cookies to every port of a host.

Over TLS its name has the prefix `__Host-`, and it is sent over TLS only. At a loopback name without TLS it has neither:
Safari drops a `Secure` cookie there, and nothing leaves the machine.
"""

from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.responses import Response

from tsuzuki.web.security.origins import LOOPBACK_NAMES, host_name

NAME = "tsuzuki-"
SECURE_PREFIX = "__Host-"


@dataclass(frozen=True)
class SessionCookie:
    """The cookie of one installation, which all servers on its database share."""

    installation: str

    @property
    def names(self) -> frozenset[str]:
        """With TLS, and without."""
        return frozenset({self._name(is_secure=True), self._name(is_secure=False)})

    def name(self, connection: HTTPConnection) -> str:
        """The name with which a request has it: only one of both is read."""
        return self._name(is_secure=_is_secure(connection))

    def secret(self, connection: HTTPConnection) -> str | None:
        return connection.cookies.get(self.name(connection))

    def keep(
        self, connection: HTTPConnection, response: Response, secret: str, *, seconds: float
    ) -> None:
        """Give the browser the secret of its session."""
        response.set_cookie(
            self.name(connection),
            secret,
            max_age=int(seconds),
            secure=_is_secure(connection),
            httponly=True,
            samesite="lax",
        )

    def forget(self, connection: HTTPConnection, response: Response) -> None:
        response.delete_cookie(
            self.name(connection), secure=_is_secure(connection), httponly=True, samesite="lax"
        )

    def _name(self, *, is_secure: bool) -> str:
        return f"{SECURE_PREFIX if is_secure else ''}{NAME}{self.installation}"


def session_cookie(connection: HTTPConnection) -> SessionCookie:
    """The cookie of the server that answers a request."""
    cookie: SessionCookie = connection.app.state.session_cookie
    return cookie


def session_secret(connection: HTTPConnection) -> str | None:
    return session_cookie(connection).secret(connection)


def _is_secure(connection: HTTPConnection) -> bool:
    host = Headers(scope=connection.scope).get("host", "")
    return connection.scope["scheme"] == "https" or host_name(host) not in LOOPBACK_NAMES
