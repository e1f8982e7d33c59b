"""Safe downloads: where they go, how long, how much, and what they tell."""

import gzip
import itertools
import logging
import traceback
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from threading import Event

import httpcore2
import pytest

from tsuzuki.model.clock import SystemClock
from tsuzuki.outward.errors import SourceRefused, SourceUnavailable
from tsuzuki.outward.safe_download import AddressRefused, SafeDownloader, TooLarge
from tsuzuki.sandbox.exchange import Response, StandInRequest, Stream
from tsuzuki.sandbox.faults import StandInFault, StandInFaultKind
from tsuzuki.sandbox.server import StandIn

SECRET = "s3cret-token"
PUBLIC = "93.184.215.14"
MEGABYTE = 1_000_000


def page(request: StandInRequest) -> Response:
    return Response(body=b"hello", content_type='Text/HTML; Charset="Shift_JIS"')


@pytest.fixture
def server() -> Iterator[StandIn]:
    with StandIn(page) as server:
        yield server


@pytest.fixture
def other() -> Iterator[StandIn]:
    with StandIn(page) as server:
        yield server


def downloader(**options: object) -> SafeDownloader:
    base = {"clock": SystemClock(), "timeout_seconds": 10.0, "private_hosts": ["127.0.0.1"]}
    return SafeDownloader(**{**base, **options})  # type: ignore[arg-type]


def redirects(*targets: str, status: int = 302) -> Callable[[StandInRequest], Response]:
    """`/0` leads to the first target, `/1` to the second."""

    def answer(request: StandInRequest) -> Response:
        number = request.path.lstrip("/")
        if not number.isdigit() or int(number) >= len(targets):
            return page(request)
        return Response(status=status, headers={"Location": targets[int(number)]})

    return answer


class LocalNetwork(httpcore2.SyncBackend):
    """Leads every connection to one local port, and remembers the address that was asked for."""

    def __init__(self, server: StandIn) -> None:
        self.port = int(server.url.rpartition(":")[2])
        self.asked: list[str] = []

    def connect_tcp(self, host: str, port: int, *args: object, **kwargs: object) -> object:  # type: ignore[override]
        self.asked.append(host)
        return super().connect_tcp("127.0.0.1", self.port, *args, **kwargs)  # type: ignore[arg-type]


def test_a_response_comes_whole_with_its_type(server: StandIn) -> None:
    with downloader() as client:
        got = client.get(f"{server.url}/a?b=c#d", bytes_max=MEGABYTE, accept="text/html")
    assert (got.status, got.body, got.media_type, got.charset) == (
        200,
        b"hello",
        "text/html",
        "shift_jis",
    )
    assert (got.final_url, got.moved_permanently_to) == (f"{server.url}/a?b=c", None)
    assert got.headers["content-length"] == "5"
    sent = server.requests[0].request
    assert (sent.target, sent.headers["Accept"]) == ("/a?b=c", "text/html")
    assert sent.headers["Host"] == server.url.removeprefix("http://")


@pytest.mark.parametrize("status", [304, 404, 410, 429, 503])
def test_other_statuses_are_returned(server: StandIn, status: int) -> None:
    server.application = lambda _request: Response(
        status=status, body=b"" if status == 304 else b"x" * 300_000, headers={"Retry-After": "7"}
    )
    with downloader() as client:
        got = client.get(server.url, bytes_max=1_000_000)
    assert (got.status, got.headers["retry-after"]) == (status, "7")
    assert len(got.body) == (0 if status == 304 else 64 * 1024)


def test_one_connection_serves_many_downloads(server: StandIn) -> None:
    with downloader() as client:
        for _ in range(3):
            client.get(server.url, bytes_max=MEGABYTE)
    assert len({seen.request.client for seen in server.requests}) == 1


def test_no_cookie_is_sent_back(server: StandIn) -> None:
    server.application = lambda _request: Response(headers={"Set-Cookie": "a=b"})
    with downloader() as client:
        client.get(server.url, bytes_max=MEGABYTE)
        client.get(server.url, bytes_max=MEGABYTE)
    assert server.requests[1].request.headers["Cookie"] is None


def test_proxies_of_the_environment_are_not_used(
    server: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with downloader() as client:
        assert client.get(server.url, bytes_max=MEGABYTE).status == 200


# Addresses


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "127.1", "2130706433", "0x7f.1", "017700000001", "[::1]", "0"],
)
def test_the_machine_itself_is_refused_however_it_is_written(server: StandIn, host: str) -> None:
    port = server.url.rpartition(":")[2]
    with downloader(private_hosts=()) as client, pytest.raises(AddressRefused) as caught:
        client.get(f"http://{host}:{port}/?key={SECRET}", bytes_max=MEGABYTE)
    assert server.requests == []
    assert SECRET not in str(caught.value)
    assert caught.value.permanent
    assert "private_hosts" in str(caught.value.hint)


def test_a_name_with_one_private_address_among_public_ones_is_refused(server: StandIn) -> None:
    network = LocalNetwork(server)
    with (
        downloader(resolve=lambda _host, _port: [PUBLIC, "10.0.0.1"], network=network) as client,
        pytest.raises(AddressRefused, match=r"site\.example is not on the public internet"),
    ):
        client.get("http://site.example/", bytes_max=MEGABYTE)
    assert network.asked == []


def test_a_dns_answer_that_changes_after_the_check_changes_nothing(server: StandIn) -> None:
    answers = iter([[PUBLIC], ["127.0.0.1"]])
    network = LocalNetwork(server)
    with downloader(
        resolve=lambda _host, _port: next(answers), network=network, private_hosts=()
    ) as client:
        client.get("http://site.example/", bytes_max=MEGABYTE)
        assert network.asked == [PUBLIC]
        assert server.requests[0].request.headers["Host"] == "site.example"
        client.close()
        with pytest.raises(AddressRefused):
            client.get("http://site.example/", bytes_max=MEGABYTE)
    assert network.asked == [PUBLIC]


def test_the_next_address_is_tried_if_the_first_does_not_answer(server: StandIn) -> None:
    class HalfDown(LocalNetwork):
        def connect_tcp(self, host: str, *args: object, **kwargs: object) -> object:  # type: ignore[override]
            if host == "8.8.8.8":
                raise httpcore2.ConnectError("down")
            return super().connect_tcp(host, *args, **kwargs)  # type: ignore[arg-type]

    network = HalfDown(server)
    with downloader(resolve=lambda _host, _port: ["8.8.8.8", PUBLIC], network=network) as client:
        assert client.get("http://site.example/", bytes_max=MEGABYTE).status == 200
    assert network.asked == [PUBLIC]


@pytest.mark.parametrize(
    ("listed", "host"),
    [
        ("Intern.Example", "intern.example"),
        ("intern.example.", "INTERN.example"),
        ("総務省.example", "総務省.example"),
        ("総務省.example", "xn--lhr645fjve.example"),
    ],
)
def test_a_private_host_is_allowed_by_its_name(server: StandIn, listed: str, host: str) -> None:
    network = LocalNetwork(server)
    with downloader(
        private_hosts=[listed], resolve=lambda _host, _port: ["10.0.0.1"], network=network
    ) as client:
        assert client.get(f"http://{host}/", bytes_max=MEGABYTE).status == 200
    assert network.asked == ["10.0.0.1"]


def test_a_name_that_is_not_resolved_is_unavailable() -> None:
    def nothing(_host: str, _port: int) -> list[str]:
        raise OSError("Name or service not known")

    with (
        downloader(resolve=nothing) as client,
        pytest.raises(SourceUnavailable, match=r"cannot resolve the name site\.example"),
    ):
        client.get("http://site.example/", bytes_max=MEGABYTE)


def test_a_resolver_that_hangs_is_given_up_at_the_deadline(server: StandIn) -> None:
    released = Event()

    def hang(_host: str, _port: int) -> list[str]:
        released.wait(30)
        return [PUBLIC]

    with (
        downloader(resolve=hang, timeout_seconds=0.1) as client,
        pytest.raises(SourceUnavailable, match="timed out"),
    ):
        client.get("http://site.example/", bytes_max=MEGABYTE)
    released.set()


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://site.example/a",
        "gopher://site.example/",
        "javascript:alert(1)",
        "data:text/html,x",
        "//site.example/a",
        "/etc/passwd",
        "",
        "http://",
        "http:///path",
        "http://user:s3cret-token@site.example/",
        "http://[::1",
        "http://site.example:99999/",
        "http://site.example:0/",
        "http://a\nb.example/",
        "http://a b.example/",
        "http://%6cocalhost/",
        "http://site.example/" + "a" * 9_000,
    ],
)
def test_what_is_no_plain_web_address_is_refused(url: str) -> None:
    with downloader() as client, pytest.raises(SourceRefused) as caught:
        client.get(url, bytes_max=MEGABYTE)
    assert caught.value.specific_code == "url_refused"
    assert SECRET not in str(caught.value)


# Redirects


def test_redirects_are_followed_and_permanent_ones_told(server: StandIn) -> None:
    server.application = redirects("/1", "/2", "/end", status=301)
    with downloader() as client:
        got = client.get(f"{server.url}/0", bytes_max=MEGABYTE)
    assert (got.final_url, got.body) == (f"{server.url}/end", b"hello")
    assert got.moved_permanently_to == f"{server.url}/end"


def test_a_temporary_redirect_ends_what_is_permanent(server: StandIn) -> None:
    def answer(request: StandInRequest) -> Response:
        places = {"/0": (301, "/1"), "/1": (302, "/2"), "/2": (301, "/end")}
        if request.path not in places:
            return page(request)
        status, target = places[request.path]
        return Response(status=status, headers={"Location": target})

    server.application = answer
    with downloader() as client:
        got = client.get(f"{server.url}/0", bytes_max=MEGABYTE)
        assert client.get(f"{server.url}/1", bytes_max=MEGABYTE).moved_permanently_to is None
    assert got.final_url == f"{server.url}/end"
    assert got.moved_permanently_to == f"{server.url}/1"


def test_a_loop_of_redirects_ends(server: StandIn) -> None:
    server.application = redirects("/0")
    with downloader() as client, pytest.raises(SourceRefused, match="more than 5 times"):
        client.get(f"{server.url}/0", bytes_max=MEGABYTE)
    assert server.count() == 6


@pytest.mark.parametrize(
    ("target", "error"),
    [
        ("http://localhost:{port}/", AddressRefused),
        ("http://169.254.169.254/latest/meta-data", AddressRefused),
        ("http://[::ffff:127.0.0.1]:{port}/", AddressRefused),
        ("//2130706433:{port}/", AddressRefused),
        ("file:///etc/passwd", SourceRefused),
        ("http://user:pass@127.0.0.1:{port}/", SourceRefused),
        ("http://[", SourceRefused),
        ("", SourceUnavailable),
    ],
)
def test_a_redirect_is_checked_like_an_address(
    server: StandIn, target: str, error: type[Exception]
) -> None:
    server.application = redirects(target.format(port=server.url.rpartition(":")[2]))
    with downloader() as client, pytest.raises(error):
        client.get(f"{server.url}/0", bytes_max=MEGABYTE)
    assert server.count() == 1


def test_secrets_do_not_go_to_another_origin_and_do_not_come_back(
    server: StandIn, other: StandIn
) -> None:
    server.application = redirects("/1", f"{other.url}/0")
    other.application = redirects(f"{server.url}/end")
    with downloader() as client:
        client.get(
            f"{server.url}/0",
            bytes_max=MEGABYTE,
            headers={"If-None-Match": '"a"', "cookie": SECRET},
            sensitive_headers={"X-Key": SECRET},
        )
    told = [
        (seen.request.path, seen.request.headers["X-Key"], seen.request.headers["Cookie"])
        for seen in server.requests + other.requests
    ]
    assert told == [
        ("/0", SECRET, SECRET),
        ("/1", SECRET, SECRET),
        ("/end", None, None),
        ("/0", None, None),
    ]
    assert other.requests[0].request.headers["If-None-Match"] == '"a"'


# Size


def endless(chunk: bytes, **headers: str) -> Response:
    return Response(stream=Stream(chunks=lambda: itertools.repeat(chunk)), headers=headers)


def gzip_bomb() -> Iterator[bytes]:
    """Ten gigabytes of zeros in ten megabytes."""
    maker = zlib.compressobj(9, wbits=zlib.MAX_WBITS | 16)
    for _ in range(10_000):
        yield maker.compress(bytes(1_000_000))


@pytest.mark.parametrize(
    "response",
    [
        pytest.param(lambda: endless(b"x" * 65_536), id="endless"),
        pytest.param(
            lambda: Response(
                stream=Stream(chunks=lambda: itertools.repeat(b"x" * 65_536), length=10**10)
            ),
            id="ten gigabytes announced",
        ),
        pytest.param(
            lambda: Response(stream=Stream(chunks=gzip_bomb), headers={"Content-Encoding": "gzip"}),
            id="gzip bomb",
        ),
        pytest.param(
            lambda: endless(gzip.compress(b"") * 500, **{"Content-Encoding": "gzip"}),
            id="endless empty gzip members",
        ),
        pytest.param(
            lambda: Response(
                body=zlib.compress(b"\0" * 50_000_000), headers={"Content-Encoding": "deflate"}
            ),
            id="deflate bomb",
        ),
    ],
)
def test_a_body_is_cut_off_at_its_limit(server: StandIn, response: Callable[[], Response]) -> None:
    answer = response()
    server.application = lambda _request: answer
    tracemalloc.start()
    try:
        with downloader() as client, pytest.raises(TooLarge) as caught:
            client.get(server.url, bytes_max=MEGABYTE)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert caught.value.specific_code == "too_large"
    assert peak < 8 * MEGABYTE


def test_a_body_of_exactly_the_limit_is_not_too_large(server: StandIn) -> None:
    server.application = lambda _request: Response(body=b"x" * 1_000)
    with downloader() as client:
        assert len(client.get(server.url, bytes_max=1_000).body) == 1_000
        with pytest.raises(TooLarge):
            client.get(server.url, bytes_max=999)


def test_an_endless_error_page_is_only_started(server: StandIn) -> None:
    server.application = lambda _request: Response(
        status=500, stream=Stream(chunks=lambda: itertools.repeat(b"x" * 65_536))
    )
    with downloader() as client:
        assert len(client.get(server.url, bytes_max=MEGABYTE).body) == 64 * 1024


# Time and failures


@pytest.mark.parametrize("kind", [StandInFaultKind.HANG, StandInFaultKind.DRIP])
def test_a_slow_answer_is_given_up_at_the_deadline(server: StandIn, kind: StandInFaultKind) -> None:
    server.faults.add(StandInFault(kind=kind, seconds=0.02))
    with (
        downloader(timeout_seconds=0.4) as client,
        pytest.raises(SourceUnavailable, match="did not respond in time"),
    ):
        client.get(server.url, bytes_max=MEGABYTE)


def test_the_deadline_is_one_for_all_redirects(server: StandIn) -> None:
    server.application = redirects("/1", "/2", "/3", "/4", "/5")
    server.faults.add(StandInFault(kind=StandInFaultKind.SLOW, seconds=0.15, times=10))
    with downloader(timeout_seconds=0.4) as client, pytest.raises(SourceUnavailable):
        client.get(f"{server.url}/0", bytes_max=MEGABYTE)
    assert server.count() < 5


@pytest.mark.parametrize(
    "fault",
    [
        StandInFault(kind=StandInFaultKind.RESET),
        StandInFault(kind=StandInFaultKind.CUT),
        StandInFault(status=200, headers={"Content-Encoding": "gzip"}, body="not gzip"),
        StandInFault(status=200, headers={"Content-Encoding": "br"}, body="not asked for"),
    ],
    ids=str,
)
def test_a_broken_answer_is_unavailable_and_tells_no_secret(
    server: StandIn, fault: StandInFault, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.faults.add(fault)
    with downloader() as client, pytest.raises(SourceUnavailable) as caught:
        client.get(
            f"{server.url}/?key={SECRET}", bytes_max=MEGABYTE, sensitive_headers={"X-Key": SECRET}
        )
    assert SECRET not in "".join(traceback.format_exception(caught.value)) + caplog.text


@pytest.mark.parametrize("value", [f"{SECRET}\r\nX-Evil: 1", f"{SECRET}\0", f"{SECRET}日本"])
def test_a_header_that_cannot_be_sent_is_refused_and_not_told(server: StandIn, value: str) -> None:
    with downloader() as client, pytest.raises(SourceRefused) as caught:
        client.get(server.url, bytes_max=MEGABYTE, sensitive_headers={"X-Key": value})
    assert caught.value.specific_code == "request_header"
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert server.requests == []


def test_a_host_that_is_not_there_is_unavailable() -> None:
    with downloader() as client, pytest.raises(SourceUnavailable, match="is unreachable"):
        client.get("http://127.0.0.1:1/", bytes_max=MEGABYTE)


def test_a_name_in_other_letters_is_asked_for_by_its_ascii_form(server: StandIn) -> None:
    asked: list[str] = []

    def resolve(host: str, _port: int) -> list[str]:
        asked.append(host)
        return [PUBLIC]

    with downloader(resolve=resolve, network=LocalNetwork(server)) as client:
        client.get("http://総務省.example/報道?a=あ", bytes_max=MEGABYTE)
    assert asked == ["xn--lhr645fjve.example"]
    assert server.requests[0].request.target == "/%E5%A0%B1%E9%81%93?a=%E3%81%82"
