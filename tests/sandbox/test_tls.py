"""A stand-in that speaks HTTPS, with certificates that a client accepts or refuses."""

import http.client
import socket
import ssl
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from support.certificates import make_certificate
from tsuzuki.collectors.feeds.sandbox.feed_site import Feed, FeedSite
from tsuzuki.sandbox.faults import StandInFault, StandInFaultKind
from tsuzuki.sandbox.server import StandIn


def ask(server: StandIn, context: ssl.SSLContext) -> tuple[int, bytes]:
    parts = urlsplit(server.url)
    client = http.client.HTTPSConnection(
        str(parts.hostname), parts.port, timeout=10, context=context
    )
    try:
        client.request("GET", "/feed.xml")
        response = client.getresponse()
        return response.status, response.read()
    finally:
        client.close()


def served(server_context: ssl.SSLContext) -> StandIn:
    site = FeedSite()
    site.add_feed(Feed())
    return site.serve(tls=server_context)


def test_a_trusted_certificate_is_served_and_links_are_https(tmp_path: Path) -> None:
    certificate = make_certificate(tmp_path)
    with served(certificate.server_context()) as server:
        server.faults.add(StandInFault(kind=StandInFaultKind.SLOW, seconds=0.06))
        status, body = ask(server, certificate.client_context())
        assert (status, f"{server.url}/feed.xml".encode() in body) == (200, True)
        assert server.url.startswith("https://")


@pytest.mark.parametrize(
    ("options", "told"),
    [({"expired": True}, "expired"), ({"host": "other.example"}, "IP address mismatch")],
)
def test_an_invalid_certificate_is_refused(
    tmp_path: Path, options: dict[str, object], told: str
) -> None:
    certificate = make_certificate(tmp_path, **options)
    with served(certificate.server_context()) as server:
        with pytest.raises(ssl.SSLCertVerificationError, match=told):
            ask(server, certificate.client_context())
        assert server.count() == 0


def test_an_unknown_issuer_is_refused(tmp_path: Path) -> None:
    known = ssl.create_default_context()
    with (
        served(make_certificate(tmp_path).server_context()) as server,
        pytest.raises(ssl.SSLCertVerificationError, match="self-signed"),
    ):
        ask(server, known)


def test_a_client_without_a_handshake_stops_neither_the_others_nor_the_end(tmp_path: Path) -> None:
    certificate = make_certificate(tmp_path)
    with served(certificate.server_context()) as server:
        parts = urlsplit(server.url)
        with socket.create_connection((str(parts.hostname), parts.port or 0), timeout=10) as silent:
            assert ask(server, certificate.client_context())[0] == 200
            server.stop()
            assert silent.recv(1) == b""
