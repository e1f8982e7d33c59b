"""Safe downloads over TLS: real certificates, real handshakes."""

import ssl
from collections.abc import Iterator
from pathlib import Path

import httpcore2
import pytest

from support.certificates import make_certificate
from tsuzuki.model.clock import SystemClock
from tsuzuki.outward.errors import SourceRefused
from tsuzuki.outward.safe_download import SafeDownloader
from tsuzuki.sandbox.exchange import Response, StandInRequest
from tsuzuki.sandbox.server import StandIn

NAME = "site.example"
PUBLIC = "93.184.215.14"


class TlsSite(StandIn):
    def __init__(self, folder: Path, *, expired: bool = False) -> None:
        super().__init__(self.answer)
        self.pem = make_certificate(folder, host=NAME, expired=expired).path
        self.names: list[str | None] = []
        self.location: str | None = None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.pem)
        context.sni_callback = lambda _link, name, _context: self.names.append(name)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)

    def answer(self, request: StandInRequest) -> Response:
        if self.location is not None:
            return Response(status=302, headers={"Location": self.location})
        return Response(body=str(request.headers["Host"]).encode())

    def downloader(self, *, trusted: bool) -> SafeDownloader:
        port = int(self.url.rpartition(":")[2])

        class Local(httpcore2.SyncBackend):
            def connect_tcp(self, host: str, asked_port: int, *args: object) -> object:  # type: ignore[override]
                assert host == PUBLIC
                return super().connect_tcp("127.0.0.1", port, *args)  # type: ignore[arg-type]

        return SafeDownloader(
            clock=SystemClock(),
            timeout_seconds=10.0,
            resolve=lambda _host, _port: [PUBLIC],
            network=Local(),
            certificates=ssl.create_default_context(cafile=self.pem) if trusted else None,
        )


@pytest.fixture
def site(tmp_path: Path) -> Iterator[TlsSite]:
    with TlsSite(tmp_path) as site:
        yield site


def test_the_name_is_in_tls_and_in_the_request_though_the_address_is_dialled(
    site: TlsSite,
) -> None:
    with site.downloader(trusted=True) as client:
        assert client.get(f"https://{NAME}/", bytes_max=1_000).body == NAME.encode()
    assert site.names == [NAME]


def test_a_self_signed_certificate_is_refused(site: TlsSite) -> None:
    with site.downloader(trusted=False) as client, pytest.raises(SourceRefused) as caught:
        client.get(f"https://{NAME}/?key=s3cret", bytes_max=1_000)
    assert caught.value.specific_code == "certificate"
    assert str(caught.value) == f"the certificate of {NAME} is invalid: self-signed certificate"
    assert site.requests == []


def test_the_certificate_of_another_name_is_refused(site: TlsSite) -> None:
    with site.downloader(trusted=True) as client, pytest.raises(SourceRefused) as caught:
        client.get("https://other.example/", bytes_max=1_000)
    assert caught.value.specific_code == "certificate"


def test_an_expired_certificate_is_refused(tmp_path: Path) -> None:
    with (
        TlsSite(tmp_path, expired=True) as site,
        site.downloader(trusted=True) as client,
        pytest.raises(SourceRefused, match="certificate has expired"),
    ):
        client.get(f"https://{NAME}/", bytes_max=1_000)


def test_a_redirect_from_https_to_http_is_refused(site: TlsSite) -> None:
    site.location = f"http://{NAME}/"
    with site.downloader(trusted=True) as client, pytest.raises(SourceRefused) as caught:
        client.get(f"https://{NAME}/", bytes_max=1_000)
    assert caught.value.specific_code == "redirect_downgrade"
    assert site.count() == 1
