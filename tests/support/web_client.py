"""A server of the API over real HTTP, and a client that shows status, headers and body."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from support.open_sites import shared_site
from tsuzuki.model.access import OwnerMode, Principal, Right, Role
from tsuzuki.store import signing_keys
from tsuzuki.web.server import Address, WebServer
from tsuzuki.wiring.application import Application, opened
from tsuzuki.wiring.collectors import installed_collectors

TIMEOUT_SECONDS = 120
NO_GITLAB = "http://127.0.0.1:9"
"""No test asks a service of others."""
SIGNING_KEY = bytes(32)
_INSTALLATION = hashlib.sha256(SIGNING_KEY + b"installation").hexdigest()[:12]
SESSION_COOKIE = f"tsuzuki-{_INSTALLATION}"
"""Session cookie name at a loopback name without TLS."""
SECURE_SESSION_COOKIE = f"__Host-{SESSION_COOKIE}"
"""Session cookie name over TLS or at another name."""


RIGHTS = installed_collectors().rights


class FixedAuthenticator:
    """Tokens by role name; `narrow` is an operator's for reading runs only, `only-RIGHT` and `without-RIGHT` are an
    admin's with one scope and with all but one. Sessions have the same names."""

    PRINCIPALS: Mapping[str, Principal] = {
        **{role.value: Principal(actor=f"user:{role.value}", role=role) for role in Role},
        "narrow": Principal(
            actor="user:narrow", role=Role.OPERATOR, scopes=frozenset({Right.RUNS_READ})
        ),
    }
    SCOPED: Mapping[str, Principal] = {
        f"{word}-{right}": Principal(actor=f"token:{word}", role=Role.ADMIN, scopes=scopes)
        for right in RIGHTS
        for word, scopes in (
            ("only", frozenset({right})),
            ("without", frozenset(RIGHTS) - {right}),
        )
    }

    def by_token(self, text: str) -> Principal | None:
        return self.PRINCIPALS.get(text) or self.SCOPED.get(text)

    def by_session(self, secret: str) -> Principal | None:
        return self.PRINCIPALS.get(secret)

    def without_credentials(self) -> Principal | None:
        return None

    def for_monitoring(self) -> Principal | None:
        return None


@dataclass(frozen=True, kw_only=True)
class HttpAnswer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        assert self.headers["content-type"] == "application/problem+json", self.body
        return str(self.json["code"])


class Client:
    """Sends requests as a principal; `token=None` sends no credentials."""

    def __init__(self, url: str, token: str | None = "admin") -> None:
        self.url = url
        self._token = token

    def as_(self, token: str | None) -> "Client":
        return Client(self.url, token)

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        raw: bytes | None = None,
    ) -> HttpAnswer:
        sent = {**({"Authorization": f"Bearer {self._token}"} if self._token else {})}
        content = raw
        if body is not None:
            content = json.dumps(body).encode()
        if content is not None:
            sent["Content-Type"] = "application/json"
        sent.update(headers or {})
        target = path if path.startswith("/") else f"/api/v1/{path}"
        connection = HTTPConnection(urlsplit(self.url).netloc, timeout=TIMEOUT_SECONDS)
        try:
            connection.request(method, target, content, sent)
            answer = connection.getresponse()
            names = {name.lower(): value for name, value in answer.getheaders()}
            return HttpAnswer(status=answer.status, headers=names, body=answer.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> HttpAnswer:
        return self.request("GET", path, headers=_header_names(headers))

    def post(self, path: str, body: Any = None, **headers: str) -> HttpAnswer:
        return self.request("POST", path, body, headers=_header_names(headers))

    def put(self, path: str, body: Any = None, **headers: str) -> HttpAnswer:
        return self.request("PUT", path, body, headers=_header_names(headers))

    def delete(self, path: str, **headers: str) -> HttpAnswer:
        return self.request("DELETE", path, headers=_header_names(headers))


def _header_names(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


@dataclass(frozen=True, kw_only=True)
class Served:
    """A running server with its application and a client."""

    application: Application
    server: WebServer
    client: Client


@contextmanager
def served_application(
    folder: Path,
    *,
    database_url: str | None = None,
    environ: Mapping[str, str] | None = None,
    fixed: bool = True,
    owner_mode: OwnerMode = OwnerMode.OPEN,
) -> Iterator[Served]:
    """A workspace in `folder`, served on a free port; its engine, if a test starts one, is stopped. Not `fixed`:
    with the users, tokens and sessions of the database."""
    given = {"PATH": os.environ["PATH"], "TSUZUKI_COMMITS_GITLAB_URL": NO_GITLAB, **(environ or {})}
    with opened(database_url=database_url, environ=given, cwd=folder) as application:
        with application.api_requests._database.write() as connection:
            signing_keys.add(connection, name="cursor", secret=SIGNING_KEY.hex())
        # A process creates the tables of a collector once: they are there before tests put the database back.
        tables = application._resources.tables
        for name in tables._components:
            tables.use(name)
        authenticator = FixedAuthenticator() if fixed else None
        address = Address(host="127.0.0.1", port=0)
        server = WebServer(application, address, authenticator=authenticator, owner_mode=owner_mode)
        server.start()
        shared = shared_site(folder) if (folder / "tsuzuki.db").exists() else nullcontext()
        try:
            with shared:
                yield Served(application=application, server=server, client=Client(server.url))
        finally:
            server.stop()
            application.local_engine.stop(at_once=True)
