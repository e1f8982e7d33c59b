"""Serves the application: binds the address, runs uvicorn in a thread of its own, and stops within two seconds.

An open stream would keep uvicorn from stopping. So streams are told first, and are cut off if they do not end.
"""

import ipaddress
import socket
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import uvicorn
from fastapi import FastAPI

from tsuzuki.model.access import OwnerMode
from tsuzuki.model.errors import Conflict, UsageError
from tsuzuki.services.server_log import capture_server_log, log
from tsuzuki.web.app import build_app
from tsuzuki.web.security.access import AccessAuthenticator
from tsuzuki.web.security.authentication import Authenticator
from tsuzuki.web.security.origins import LOOPBACK_NAMES
from tsuzuki.web.watched_connection import WatchedConnection
from tsuzuki.wiring.application import Application, local_actor

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8420
STREAMS_END_SECONDS = 1
STOP_SECONDS = 2.0


@dataclass(frozen=True, kw_only=True)
class Address:
    """Where a server listens."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def url(self, port: int) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{port}"


def parse_address(text: str) -> Address:
    """`HOST:PORT`, `[IPv6]:PORT`, `HOST` or `:PORT`. Raises `UsageError`."""
    host, port = text, ""
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        port = rest.removeprefix(":")
    elif text.count(":") == 1:
        host, _, port = text.partition(":")
    if text.isdigit() or (port and not (port.isdigit() and int(port) <= 65_535)):
        raise UsageError(
            f"{text!r} is not an address",
            hint="Write HOST:PORT, such as 127.0.0.1:8420.",
            code="listen",
        )
    return Address(host=host or DEFAULT_HOST, port=int(port) if port else DEFAULT_PORT)


def parse_proxies(texts: Collection[str]) -> list[str]:
    """Addresses and networks of proxies. Raises `UsageError` for what is neither."""
    try:
        return [str(ipaddress.ip_network(text)) for text in texts]
    except ValueError as problem:
        raise UsageError(
            f"{problem}",
            hint="Give the address or network from which the proxy connects: 127.0.0.1, 10.0.0.0/24.",
            code="proxy_address",
        ) from None


class WebServer:
    """One server in a thread of its own. Only from `trusted_proxies` are the headers X-Forwarded-For and
    X-Forwarded-Proto taken as the address and the scheme of a request. `owner_mode` is that of the configuration if it
    is not given."""

    def __init__(
        self,
        application: Application,
        address: Address,
        *,
        allowed_hosts: Collection[str] = (),
        trusted_proxies: Collection[str] = (),
        authenticator: Authenticator | None = None,
        owner_mode: OwnerMode | None = None,
    ) -> None:
        self._listener = _bind(address)
        capture_server_log()
        self.url = address.url(self._listener.getsockname()[1])
        mode = owner_mode or application.owner_mode()
        has_owner = address.is_loopback and not trusted_proxies
        self.signs_owner_in = has_owner and mode is OwnerMode.LINK and authenticator is None
        """Whether the owner signs in by a link, as long as there is no user."""
        owner = local_actor("web") if has_owner else None
        if authenticator is None:
            authenticator = AccessAuthenticator(application, owner=owner, owner_mode=mode)
        hosts = {*LOOPBACK_NAMES, address.host.lower(), *(name.lower() for name in allowed_hosts)}
        self.app = build_app(
            application,
            authenticator,
            installation=application.api_requests.installation,
            allowed_hosts=hosts,
            owner=owner if self.signs_owner_in else None,
        )
        config = uvicorn.Config(
            self.app,
            http=WatchedConnection,
            log_config=None,
            access_log=False,
            server_header=False,
            # Said here: uvicorn would believe what any program of this machine says of scheme and address.
            proxy_headers=bool(trusted_proxies),
            forwarded_allow_ips=parse_proxies(trusted_proxies),
            timeout_graceful_shutdown=STREAMS_END_SECONDS,
            timeout_keep_alive=15,
            h11_max_incomplete_event_size=65_536,
        )
        self._server = _Server(config, self.app)
        self._thread = threading.Thread(target=self._run, name="web", daemon=True)

    def start(self) -> None:
        self._thread.start()
        self._server.has_started.wait()

    def stop(self) -> bool:
        """End open streams, and then everything. False if it did not end within two seconds, and was cut off."""
        self._server.should_exit = True
        self._thread.join(STOP_SECONDS)
        is_in_time = not self._thread.is_alive()
        self._server.force_exit = True
        self._thread.join(STOP_SECONDS)
        self._listener.close()
        return is_in_time

    def _run(self) -> None:
        try:
            self._server.run(sockets=[self._listener])
        except Exception:  # noqa: BLE001 - the last net of the thread: it must be told
            log.exception("web_server_failed")
        finally:
            self._server.has_started.set()


class _Server(uvicorn.Server):
    """Leaves signals to the process, says when it has started, and tells streams to end first."""

    def __init__(self, config: uvicorn.Config, app: FastAPI) -> None:
        super().__init__(config)
        self._app = app
        self.has_started = threading.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.has_started.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._app.state.stopping.set()
        await super().shutdown(sockets)


@contextmanager
def served(server: WebServer | None) -> Iterator[None]:
    """Serve while the block runs, if there is a server."""
    if server is None:
        yield
        return
    server.start()
    try:
        yield
    finally:
        server.stop()


def _bind(address: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    # With the protocol named, asyncio disables Nagle's algorithm. Else each answer in two parts, such as a long one or
    # a stream, waits for a delayed acknowledgement: 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((address.host, address.port))
        listener.listen(2048)
    except OSError as problem:
        listener.close()
        raise Conflict(
            f"cannot listen on {address.host}:{address.port}: {problem.strerror or problem}",
            hint="Choose another address with --listen HOST:PORT, or stop the program that uses it.",
            code="port_in_use",
        ) from None
    return listener
