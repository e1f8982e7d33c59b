"""A client that keeps a connection waiting is cut off, and there are so many connections and no more."""

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from urllib.parse import urlsplit

import pytest
from uvicorn.protocols.http.h11_impl import H11Protocol

from support.waiting import TIMEOUT_SECONDS, wait_until
from support.web_client import FixedAuthenticator, Served
from tsuzuki.web import watched_connection
from tsuzuki.web.pages.assets import asset_url
from tsuzuki.web.server import Address, WebServer

ALIVE = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
STYLE = ALIVE.replace(b"/livez", asset_url("tsuzuki.css").encode())


def open_connections(served: Served) -> set[H11Protocol]:
    return {*served.server._server.server_state.connections}


@contextmanager
def connected(
    served: Served, *, receive_bytes: int | None = None, source: str | None = None
) -> Iterator[socket.socket]:
    address = urlsplit(served.server.url)
    with closing(socket.socket()) as client:
        client.settimeout(TIMEOUT_SECONDS)
        if receive_bytes is not None:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        if source is not None:
            client.bind((source, 0))
        client.connect((address.hostname, address.port))
        yield client


def read_to_its_end(client: socket.socket) -> bytes:
    found = b""
    try:
        while piece := client.recv(65_536):
            found += piece
    except ConnectionResetError:
        pass
    return found


@pytest.mark.parametrize(
    "sent",
    [b"", ALIVE[:20], ALIVE + b"G"],
    ids=["nothing", "half of a head", "an answered request, and a byte"],
)
def test_a_request_that_does_not_come_is_not_waited_for(
    served: Served, sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watched_connection, "LOOK_SECONDS", 0.2)
    with connected(served) as client:
        client.sendall(sent)
        read_to_its_end(client)  # which is the proof: there is one


def test_an_answer_that_is_not_read_is_not_kept(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watched_connection, "LOOK_SECONDS", 0.2)
    before = open_connections(served)
    with connected(served, receive_bytes=4096) as client:
        # One of another test may be closed meanwhile.
        wait_until(lambda: bool(open_connections(served) - before), "the connection is there")
        (connection,) = open_connections(served) - before
        client.sendall(STYLE * 400)
        wait_until(lambda: connection not in open_connections(served), "it was cut off")


def test_a_stream_that_says_nothing_is_not_cut_off(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[object] = []
    look = watched_connection.WatchedConnection._look

    def counted(self: watched_connection.WatchedConnection) -> None:
        looks.append(self)
        look(self)

    monkeypatch.setattr(watched_connection.WatchedConnection, "_look", counted)
    monkeypatch.setattr(watched_connection, "LOOK_SECONDS", 0.1)
    with connected(served) as client:
        client.sendall(
            b"GET /api/v1/stream?topics=runs HTTP/1.1\r\nHost: localhost\r\n"
            b"Authorization: Bearer viewer\r\n\r\n"
        )
        wait_until(lambda: len(looks) > 5, "it was looked at")
        client.settimeout(0)
        assert b"event: ready" in client.recv(65_536)
        with pytest.raises(BlockingIOError):
            client.recv(1)


def test_there_are_so_many_connections_and_no_more(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_until(lambda: not open_connections(served), "those of other tests are gone")
    monkeypatch.setattr(watched_connection, "CONNECTIONS_MAX", 1)
    with connected(served) as first:
        wait_until(lambda: bool(open_connections(served)), "the first is there")
        with connected(served) as second:
            assert read_to_its_end(second) == b""
        first.sendall(ALIVE.replace(b"HTTP/1.1", b"HTTP/1.0"))
        assert b"200 OK" in read_to_its_end(first)
    wait_until(lambda: not open_connections(served), "the first is gone")
    assert served.client.get("/livez").status == 200


def test_one_address_has_half_of_the_connections_and_leaves_the_rest_to_others(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_until(lambda: not open_connections(served), "those of other tests are gone")
    monkeypatch.setattr(watched_connection, "CONNECTIONS_MAX", 4)
    with connected(served), connected(served):
        wait_until(lambda: len(open_connections(served)) == 2, "both are there")
        with connected(served) as third:
            with suppress(ConnectionError):  # it may be cut off before
                third.sendall(ALIVE)
            assert read_to_its_end(third) == b""
        with connected(served, source="127.0.0.2") as other:
            other.sendall(ALIVE.replace(b"HTTP/1.1", b"HTTP/1.0"))
            assert b"200 OK" in read_to_its_end(other)


def test_a_trusted_proxy_has_the_connections_of_many(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxied = WebServer(
        served.application,
        Address(host="127.0.0.1", port=0),
        trusted_proxies=["127.0.0.0/8"],
        authenticator=FixedAuthenticator(),
    )
    proxied.start()
    monkeypatch.setattr(watched_connection, "CONNECTIONS_MAX", 4)
    behind = replace(served, server=proxied)
    try:
        with connected(behind), connected(behind), connected(behind) as third:
            third.sendall(ALIVE.replace(b"HTTP/1.1", b"HTTP/1.0"))
            assert b"200 OK" in read_to_its_end(third)
    finally:
        proxied.stop()


def test_half_of_the_files_are_left_to_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    for files, expected in ((1024, 512), (100_000, watched_connection.CONNECTIONS_MAX), (-1, 2000)):
        monkeypatch.setattr(
            watched_connection.resource, "getrlimit", lambda _kind, files=files: (files, files)
        )
        assert watched_connection.connections_max() == expected
