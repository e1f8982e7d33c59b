"""nginx and Caddy with the files of `deploy/`, really in front of the server: requests, addresses, open streams."""

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from typing import TypeAlias

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from support.certificates import make_certificate
from support.daemons import eventually
from support.deploy_tools import ROOT, tool
from support.redis_server import free_port
from tsuzuki.model.access import Role
from tsuzuki.web.server import Address, WebServer
from tsuzuki.wiring.application import Application, opened

NAME = "tsuzuki.example.com"
SECONDS = 30
DEPLOY = ROOT / "deploy"

Connect: TypeAlias = Callable[[], HTTPConnection]
"""A connection to the proxy."""


@pytest.fixture(scope="module")
def application(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Application]:
    with opened(environ={}, cwd=tmp_path_factory.mktemp("proxied")) as application:
        yield application


def seen(request: Request) -> JSONResponse:
    """What a request looks like to the application."""
    address = request.client.host if request.client else None
    return JSONResponse([request.url.scheme, address, request.headers["Host"]])


@pytest.fixture(scope="module")
def server(application: Application) -> Iterator[WebServer]:
    server = WebServer(
        application,
        Address(host="127.0.0.1", port=0),
        allowed_hosts=[NAME],
        trusted_proxies=["127.0.0.1"],
    )
    server.app.router.routes.insert(0, Route("/seen", seen))
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def token(application: Application) -> str:
    application.users.add("ada", "correct horse battery", role=Role.ADMIN, by=application.principal)
    return application.tokens.create("reader", by=application.principal, role=Role.VIEWER).text


@contextmanager
def running(*command: object, connect: Connect, environ: dict[str, str]) -> Iterator[Connect]:
    process = subprocess.Popen(
        [str(word) for word in command], env=environ, stderr=subprocess.PIPE, text=True
    )
    try:
        eventually(lambda: answers(connect), what="the proxy")
        yield connect
    finally:
        process.terminate()
        process.communicate(timeout=SECONDS)


def answers(connect: Connect) -> bool:
    connection = connect()
    try:
        connection.request("GET", "/livez", headers={"Host": NAME})
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


@contextmanager
def nginx(folder: Path, upstream: str) -> Iterator[Connect]:
    certificate = make_certificate(folder)
    port = free_port()
    text = (DEPLOY / "nginx" / "tsuzuki.conf").read_text(encoding="utf-8")
    for ours, here in (
        ("127.0.0.1:8420", upstream),
        ("listen 443 ssl", f"listen 127.0.0.1:{port} ssl"),
        ("/etc/ssl/tsuzuki.pem", str(certificate.path)),
    ):
        assert ours in text
        text = text.replace(f"{ours};", f"{here};")
    (folder / "site.conf").write_text(text, encoding="utf-8")
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = "".join(f"{kind}_temp_path {folder / kind};\n" for kind in kinds)
    (folder / "nginx.conf").write_text(
        f"daemon off;\nmaster_process off;\npid {folder}/pid;\nerror_log stderr;\n"
        f"events {{}}\nhttp {{\naccess_log off;\n{temporary}include site.conf;\n}}\n",
        encoding="utf-8",
    )
    command = [tool("nginx"), "-p", folder, "-c", folder / "nginx.conf", "-e", "stderr"]
    subprocess.run([str(word) for word in [*command, "-t"]], check=True, capture_output=True)
    context = certificate.client_context()

    def connect() -> HTTPConnection:
        return HTTPSConnection("127.0.0.1", port, timeout=SECONDS, context=context)

    with running(*command, connect=connect, environ={}) as ready:
        yield ready


@contextmanager
def caddy(folder: Path, upstream: str) -> Iterator[Connect]:
    port = free_port()
    file = folder / "Caddyfile"
    file.write_text(
        f"{{\nadmin off\n}}\nimport {DEPLOY / 'caddy' / 'Caddyfile'}\n", encoding="utf-8"
    )
    environ = {
        "HOME": str(folder),
        "TSUZUKI_SITE": f"http://:{port}",
        "TSUZUKI_UPSTREAM": upstream,
    }
    words = ["--config", file, "--adapter", "caddyfile"]
    with running(
        *[tool("caddy"), "run", *words],
        connect=lambda: HTTPConnection("127.0.0.1", port, timeout=SECONDS),
        environ=environ,
    ) as ready:
        yield ready


@pytest.fixture(scope="module", params=[nginx, caddy], ids=["nginx", "caddy"])
def connect(
    request: pytest.FixtureRequest,
    server: WebServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Connect]:
    upstream = server.url.removeprefix("http://")
    with request.param(tmp_path_factory.mktemp("proxy"), upstream) as connect:
        yield connect


def test_each_event_of_a_stream_arrives_while_the_stream_is_open(
    connect: Connect, token: str, application: Application
) -> None:
    connection = connect()
    headers = {"Host": NAME, "Authorization": f"Bearer {token}"}
    connection.request("GET", "/api/v1/stream?topics=runs", headers=headers)
    answer = connection.getresponse()
    assert answer.status == 200
    assert answer.getheader("Content-Type", "").startswith("text/event-stream")
    lines = iter(answer.fp.readline, b"")
    assert any(line == b"event: ready\n" for line in lines)
    connection.close()


def test_address_and_scheme_are_what_the_proxy_sees_and_not_what_a_client_claims(
    connect: Connect,
) -> None:
    connection = connect()
    scheme = "https" if isinstance(connection, HTTPSConnection) else "http"
    claimed = {"https": "http", "http": "https"}[scheme]
    forged = {"Host": NAME, "X-Forwarded-Proto": claimed, "X-Forwarded-For": "203.0.113.9"}
    connection.request("GET", "/seen", headers=forged)
    assert json.loads(connection.getresponse().read()) == [scheme, "127.0.0.1", NAME]
    connection.close()
