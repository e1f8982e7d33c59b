"""Starting the server: on stdio, or as streamable HTTP on loopback.

It ends with its client: at the end of stdin, or with SIGTERM or SIGINT. Builds that it runs are cancelled then, and
what they stored is kept.
"""

import hmac
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import uvicorn
from mcp.server.stdio import stdio_server

from tsuzuki.mcp.presets import presets
from tsuzuki.mcp.server import ToolServer
from tsuzuki.mcp.tool import ServerState
from tsuzuki.model.errors import Conflict

if TYPE_CHECKING:
    from mcp.server.lowlevel.server import Server
    from starlette.applications import Starlette
    from starlette.types import ASGIApp, Receive, Scope, Send

LOOPBACK = "127.0.0.1"
STOP_SECONDS = 2


def server_state(
    *,
    environ: Mapping[str, str],
    cwd: Path,
    root: str | None,
    sources: Mapping[str, Any],
    is_confined: bool,
) -> ServerState:
    return ServerState(
        environ=environ, cwd=cwd.absolute(), root=root, sources=sources, is_confined=is_confined
    )


def serve_stdio(preset: str, state: ServerState) -> None:
    """Serve the client that started us, until it is gone."""
    _log_to_stderr()
    try:
        anyio.run(_serve_stdio, ToolServer(presets()[preset], state), state)
    finally:
        state.close()


async def _serve_stdio(tools: ToolServer, state: ServerState) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(_end_on_signal, state)
        async with stdio_server() as (received, sent):
            await tools.server.run(received, sent, tools.server.create_initialization_options())
        group.cancel_scope.cancel()


async def _end_on_signal(state: ServerState) -> None:
    """The thread that reads stdin cannot be interrupted, so the process ends here."""
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for number in signals:
            state.close()
            sys.stderr.flush()
            os._exit(130 if number == signal.SIGINT else 0)


def serve_http(
    preset: str,
    state: ServerState,
    *,
    port: int,
    token: str | None,
    on_start: Callable[[str], None],
) -> bool:
    """Serve the clients of this machine that send the token, or all of them without one, until a signal. `on_start` is
    told the address. Whether it was ^C."""
    _log_to_stderr()
    with _listener(port) as listener:
        config = uvicorn.Config(
            with_token(http_app(preset, state), token) if token else http_app(preset, state),
            log_level="warning",
            timeout_graceful_shutdown=STOP_SECONDS,
        )
        try:
            on_start(f"http://{LOOPBACK}:{listener.getsockname()[1]}/mcp")
            return anyio.run(_serve_http, _HttpServer(config), listener)
        finally:
            state.close()


class _HttpServer(uvicorn.Server):
    """Leaves signals to us: it would end the process with the one that it got."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _serve_http(server: uvicorn.Server, listener: socket.socket) -> bool:
    received: list[signal.Signals] = []

    async def stop_on_signal() -> None:
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async for number in signals:
                received.append(number)
                server.should_exit = True

    async with anyio.create_task_group() as group:
        group.start_soon(stop_on_signal)
        await server.serve(sockets=[listener])
        group.cancel_scope.cancel()
    return signal.SIGINT in received


def http_app(preset: str, state: ServerState) -> "Starlette":
    """The application that answers at `/mcp`. Host and Origin must be those of this machine."""
    return app_of(ToolServer(presets()[preset], state).server)


def app_of(server: "Server[Any]") -> "Starlette":
    return server.streamable_http_app(streamable_http_path="/mcp", host=LOOPBACK)


def with_token(app: "ASGIApp", token: str) -> "ASGIApp":
    """The application for requests that send the token; 401 for the others."""
    expected = f"Bearer {token}".encode()

    async def checked(scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] == "http":
            given = dict(scope["headers"]).get(b"authorization", b"")
            if not hmac.compare_digest(given, expected):
                await _refuse(send)
                return
        await app(scope, receive, send)

    return checked


async def _refuse(send: "Send") -> None:
    body = b"Send the token that the server printed: Authorization: Bearer TOKEN\n"
    headers = [(b"content-type", b"text/plain"), (b"www-authenticate", b"Bearer")]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _listener(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((LOOPBACK, port))
        listener.listen()
    except OSError as problem:
        listener.close()
        raise Conflict(
            f"cannot use port {port} of {LOOPBACK}: {problem.strerror}",
            hint="Choose another port with --port; 0 picks a free one.",
            code="port_in_use",
        ) from None
    return listener


def _log_to_stderr() -> None:
    """Stdout belongs to the protocol."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(name)s: %(message)s")
