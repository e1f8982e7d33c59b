"""The kit every HTTP stand-in is made of: a server for an application, with a log and with faults.

    def volume(request: Request) -> Response:
        return json_response({"id": request.params["id"]})

    routes = [Route("GET", "/v1/volumes/{id}", volume)]
    with StandIn(Router(routes, otherwise=missing)) as stand_in:      # a free port of 127.0.0.1
        stand_in.faults.add(Fault(path="*/volumes/*", status=503, skip=2, times=3))
        client.get(f"{stand_in.url}/v1/volumes/zyTCAlFPjgYC")
        assert stand_in.count("*/volumes/*") == 1

`StandInRequest`, `Response`, `Route`, `Router` and `json_response` are in `exchange`, `StandInFault` in `faults`; the
same faults are to be had over HTTP (`control`). HTTP/1.1 with connections kept alive; one thread per
connection. A request is logged just before its response is sent, so a client that has the response finds it.
"""

import io
import json
import logging
import select
import socket
import ssl
import struct
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self, assert_never
from urllib.parse import parse_qsl, urlencode

from .control import PREFIX, Seen, control
from .exchange import Application, Response, StandInRequest, Stream
from .faults import LOGIN_PAGE, Faults, StandInFault, StandInFaultKind, matches

REMEMBERED_REQUESTS = 100_000
BODY_BYTES_MAX = 64 * 1024 * 1024
BODILESS = (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)
"""Statuses that end with their head; a body would be read as the next response."""

LOOK_SECONDS = 0.05
"""How often a held request looks whether its client is still there."""


class StandIn:
    """A server on `host:port` (0: any free port) between `start` and `stop`, or as a context. With `tls` it speaks
    HTTPS. An application with `control_routes` adds them under `/_sandbox`."""

    def __init__(
        self,
        application: Application,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.faults = Faults()
        self.application = application
        self._log: deque[Seen] = deque(maxlen=REMEMBERED_REQUESTS)
        own_routes = getattr(application, "control_routes", ())
        self.control = control(self.faults, lambda: self.requests, own_routes)
        self.tls = tls
        self._server = _Server((host, port), self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(LOOK_SECONDS,))

    @property
    def url(self) -> str:
        host = self._server.server_address[0]
        return f"{self.scheme}://{host!s}:{self.port}"

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def scheme(self) -> str:
        return "http" if self.tls is None else "https"

    @property
    def requests(self) -> list[Seen]:
        """What came so far, oldest first, without what went to `/_sandbox`."""
        return list(self._log)

    def count(self, path: str = "*") -> int:
        """How many requests came for this path (`*` stands for any text, see `faults.Fault`)."""
        return sum(matches(path, seen.request.target) for seen in self._log.copy())

    def forget_requests(self) -> None:
        self._log.clear()

    def note(self, request: StandInRequest, status: int | None) -> None:
        self._log.append(Seen(request=request, status=status))

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End in good order: held requests are let go, connections closed, threads joined."""
        self.faults.clear()
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.close_connections()
        self._server.server_close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self.stop()


class _Server(ThreadingHTTPServer):
    request_queue_size = 256
    daemon_threads = False  # the threads are joined at the end
    allow_reuse_address = True

    def __init__(self, address: tuple[str, int], stand_in: StandIn) -> None:
        self.stand_in = stand_in
        self._open: set[socket.socket] = set()
        self._closing = False
        self._lock = threading.Lock()
        super().__init__(address, _Handler)

    def get_request(self) -> tuple[socket.socket, Any]:
        link, address = super().get_request()
        if self.stand_in.tls is not None:
            # The handshake is left to the connection's own thread: it may take for ever.
            link = self.stand_in.tls.wrap_socket(
                link, server_side=True, do_handshake_on_connect=False
            )
        return link, address

    @contextmanager
    def connection(self, link: socket.socket) -> Iterator[None]:
        """The connection is known, so that stopping can end a client's idle wait on it."""
        with self._lock:
            if self._closing:
                link.shutdown(socket.SHUT_RDWR)
            self._open.add(link)
        try:
            yield
        finally:
            with self._lock:
                self._open.discard(link)

    def close_connections(self) -> None:
        with self._lock:
            self._closing = True
            for link in self._open:
                with suppress(OSError):
                    link.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 -- as inherited
        logging.getLogger(__name__).debug("a connection ended early", exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body leave together
    server: _Server
    connection: socket.socket

    def handle(self) -> None:
        with self.server.connection(self.connection), suppress(ConnectionError, ssl.SSLError):
            if isinstance(self.connection, ssl.SSLSocket):
                self.connection.do_handshake()
            super().handle()

    def _serve(self) -> None:
        request = self._read()
        if request is None:
            self._send(Response(status=413))
            self.close_connection = True
            return
        stand_in = self.server.stand_in
        if request.path.startswith(PREFIX):
            self._send(stand_in.control(request))
            return
        fault = stand_in.faults.strike(request.method, request.target)
        response = self._spoil(request, fault) if fault else self._ask(request)
        if response is not None and not self._arrives(response):
            response = None
        stand_in.note(request, response.status if response else None)
        if response is None:
            self._reset()
        elif fault is not None and fault.kind is StandInFaultKind.DRIP:
            self._drip(response, fault.seconds)
        else:
            self._send(response, cut=fault is not None and fault.kind is StandInFaultKind.CUT)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815 -- as inherited

    def _spoil(self, request: StandInRequest, fault: StandInFault) -> Response | None:
        """What is sent in spite of the fault; None if nothing is."""
        match fault.kind:
            case StandInFaultKind.ANSWER:
                return _ordered(fault, fault.body.encode(), fault.content_type)
            case StandInFaultKind.HTML:
                return _ordered(fault, LOGIN_PAGE, "text/html; charset=utf-8")
            case StandInFaultKind.HANG | StandInFaultKind.SLOW:
                seconds = fault.seconds if fault.kind is StandInFaultKind.SLOW else None
                return self._ask(request) if self._hold(seconds) else None
            case StandInFaultKind.CUT | StandInFaultKind.DRIP:
                return self._ask(request)
            case StandInFaultKind.RESET:
                return None
            case StandInFaultKind.SHORT | StandInFaultKind.SWAPPED:
                return _spoiled(self._ask(_with_query(request, fault.query)), fault)
            case _:
                assert_never(fault.kind)

    def _arrives(self, response: Response) -> bool:
        """Whether the client is there to get what the application answered."""
        if response.held_seconds and not self._hold(response.held_seconds):
            return False
        return not response.lost

    def _ask(self, request: StandInRequest) -> Response:
        try:
            return self.server.stand_in.application(request)
        except Exception:
            logging.getLogger(__name__).exception("the stand-in failed at %s", request.path)
            return Response(status=500, body=b'{"message":"500 Internal Server Error"}')

    def _read(self) -> StandInRequest | None:
        """The whole request, or None if its body is too large to be meant."""
        length = int(self.headers.get("Content-Length") or 0)
        if length > BODY_BYTES_MAX:
            return None
        path, _, query_text = self.path.partition("?")
        host = self.headers.get("Host")
        stand_in = self.server.stand_in
        return StandInRequest(
            method=self.command,
            path=path,
            query_text=query_text,
            query=dict(parse_qsl(query_text, keep_blank_values=True)),
            headers=self.headers,
            body=self.rfile.read(length),
            client="{}:{}".format(*self.client_address),
            base_url=f"{stand_in.scheme}://{host}" if host else stand_in.url,
        )

    def _send(self, response: Response, *, cut: bool = False) -> None:
        self._send_head(response)
        if self.command != "HEAD" and response.status not in BODILESS:
            if response.stream is not None:
                self._send_stream(response.stream, cut=cut)
            else:
                self.wfile.write(response.body[: len(response.body) // 2] if cut else response.body)
        if cut:
            self.close_connection = True

    def _send_head(self, response: Response) -> None:
        self.send_response(response.status)
        if response.status not in BODILESS:
            if response.content_type:
                self.send_header("Content-Type", response.content_type)
            length = len(response.body) if response.stream is None else response.stream.length
            if length is None:
                self.send_header("Transfer-Encoding", "chunked")
            else:
                self.send_header("Content-Length", str(length))
        for name, value in response.headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _send_stream(self, stream: Stream, *, cut: bool) -> None:
        """Send chunk after chunk, until the client is gone; cut: end after the first one."""
        for chunk in filter(None, stream.chunks()):
            self.wfile.write(chunk if stream.length is not None else _framed(chunk))
            self.wfile.flush()
            if cut:
                return
            if stream.pause_seconds and not self._hold(stream.pause_seconds):
                self.close_connection = True
                return
        if stream.length is None:
            self.wfile.write(_framed(b""))

    def _drip(self, response: Response, seconds: float) -> None:
        """Send an answer byte by byte, until the client is gone or the fault is released."""
        if response.stream is not None:
            self._send(replace(response, stream=response.stream.byte_by_byte(seconds)))
            return
        wire, self.wfile = self.wfile, io.BytesIO()
        self._send(response)
        sent, self.wfile = self.wfile.getvalue(), wire
        for byte in sent:
            wire.write(bytes([byte]))
            wire.flush()
            if not self._hold(seconds):
                self.close_connection = True
                return

    def _hold(self, seconds: float | None) -> bool:
        """Keep the client waiting; false if it did not wait until it was let go."""
        faults = self.server.stand_in.faults
        released = faults.begin_holding()
        left = seconds
        try:
            while not released.wait(LOOK_SECONDS if left is None else min(left, LOOK_SECONDS)):
                if self._client_is_gone():
                    return False
                if left is not None and (left := left - LOOK_SECONDS) <= 0:
                    break
            return True
        finally:
            faults.end_holding()

    def _client_is_gone(self) -> bool:
        watch = select.poll()
        watch.register(self.connection, select.POLLIN)
        if not watch.poll(0):
            return False
        try:
            # Below TLS, which cannot peek.
            return not socket.socket.recv(self.connection, 1, socket.MSG_PEEK)
        except OSError:
            return True

    def _reset(self) -> None:
        # Closing without lingering makes the kernel send RST instead of FIN; it happens when the
        # streams over the socket are closed, which the base class does next.
        linger = struct.pack("ii", 1, 0)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.connection.close()
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- as inherited
        """Silent: the requests are kept for callers."""


def _framed(chunk: bytes) -> bytes:
    """A chunk as HTTP/1.1 frames it; the empty one ends the body."""
    return b"%x\r\n%s\r\n" % (len(chunk), chunk)


def _spoiled(response: Response, fault: StandInFault) -> Response:
    headers = {**response.headers, **fault.headers}
    if fault.kind is not StandInFaultKind.SHORT:
        return replace(response, headers=headers)
    rows = json.loads(response.body)[: fault.rows]
    return replace(response, body=json.dumps(rows).encode(), headers=headers)


def _with_query(request: StandInRequest, changes: Mapping[str, str]) -> StandInRequest:
    """The request with some of its parameters changed; without changes the request as it came."""
    if not changes:
        return request
    query = {**request.query, **changes}
    return replace(request, query=query, query_text=urlencode(query))


def _ordered(fault: StandInFault, body: bytes, content_type: str) -> Response:
    return Response(
        status=fault.status, body=body, content_type=content_type, headers=fault.headers
    )
