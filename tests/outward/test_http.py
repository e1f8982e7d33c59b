"""The HTTP kit: limits, classes of failure, and no secret in anything it says."""

import logging
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from tsuzuki.model.clock import ManualClock, SystemClock
from tsuzuki.model.errors import ConfigurationError
from tsuzuki.outward.errors import (
    NotConnected,
    RateLimitedUntil,
    SourceFailed,
    SourceRefused,
    SourceUnavailable,
)
from tsuzuki.outward.http import HttpClient, HttpResponse, checked_base_url
from tsuzuki.sandbox.exchange import Application, Response, StandInRequest, json_response
from tsuzuki.sandbox.faults import StandInFault, StandInFaultKind
from tsuzuki.sandbox.server import StandIn

SECRET = "s3cret-key"
NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def echo(request: StandInRequest) -> Response:
    return json_response({"query": request.query})


@pytest.fixture
def server() -> Iterator[StandIn]:
    with StandIn(echo) as server:
        yield server


def client_of(server: StandIn, **options: object) -> HttpClient:
    base = {"service": "The shop", "base_url": server.url, "secrets": [SECRET]}
    return HttpClient(**{**base, "clock": SystemClock(), **options})  # type: ignore[arg-type]


def failure(client: HttpClient, status: int, **headers: str) -> SourceFailed:
    return client.failure_of(HttpResponse(status=status, headers=headers, body=b""))


def test_an_answer_comes_whole(server: StandIn) -> None:
    with client_of(server) as client:
        answer = client.get("/volumes", {"q": "a b&c", "n": 1})
    assert (answer.status, answer.json()) == (200, {"query": {"q": "a b&c", "n": "1"}})


def test_a_document_is_posted_once_with_the_given_headers() -> None:
    seen: list[StandInRequest] = []

    def keep(request: StandInRequest) -> Response:
        seen.append(request)
        return json_response({"n": len(seen)}, status=201)

    with StandIn(keep) as server, client_of(server) as client:
        answer = client.post_json("/orders", {"text": "日本"}, headers={"x-key": SECRET})
    assert (answer.status, answer.json()) == (201, {"n": 1})
    (request,) = seen
    assert (request.method, request.path, request.json()) == ("POST", "/orders", {"text": "日本"})
    assert request.headers["x-key"] == SECRET
    assert request.headers["content-type"] == "application/json"


def test_a_request_without_a_connection_was_not_sent(server: StandIn) -> None:
    with client_of(server) as client:
        server.stop()
        with pytest.raises(NotConnected):
            client.post_json("/orders", {})


def test_a_request_whose_connection_breaks_later_may_have_been_sent(server: StandIn) -> None:
    server.faults.add(StandInFault(kind=StandInFaultKind.RESET))
    with client_of(server) as client, pytest.raises(SourceUnavailable) as caught:
        client.post_json("/orders", {})
    assert not isinstance(caught.value, NotConnected)


@pytest.mark.parametrize(
    "fault",
    [
        StandInFault(kind=StandInFaultKind.RESET),
        StandInFault(kind=StandInFaultKind.CUT),
        StandInFault(status=200, headers={"Content-Encoding": "gzip"}, body="not gzip"),
    ],
    ids=lambda fault: str(fault.kind),
)
def test_a_connection_that_breaks_is_unwell_and_tells_no_secret(
    server: StandIn, fault: StandInFault, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.faults.add(fault)
    with client_of(server) as client, pytest.raises(SourceUnavailable) as caught:
        client.get("/volumes", {"key": SECRET})
    told = "".join(traceback.format_exception(caught.value)) + caplog.text
    assert SECRET not in told
    assert caught.value.__cause__ is None


def test_the_librarys_log_does_not_tell_the_url(
    server: StandIn, caplog: pytest.LogCaptureFixture
) -> None:
    with client_of(server) as client:
        caplog.set_level(logging.DEBUG)
        client.get("/volumes", {"key": SECRET})
    assert SECRET not in caplog.text


def test_a_server_that_is_not_there_is_unwell(server: StandIn) -> None:
    with (
        client_of(server, base_url="http://127.0.0.1:1") as client,
        pytest.raises(SourceUnavailable, match="The shop is unreachable"),
    ):
        client.get("/", {})


def test_a_server_that_does_not_answer_is_given_up(server: StandIn) -> None:
    server.faults.add(StandInFault(kind=StandInFaultKind.HANG))
    with (
        client_of(server, answer_seconds=0.1) as client,
        pytest.raises(SourceUnavailable, match="did not respond in time"),
    ):
        client.get("/", {})


@pytest.mark.parametrize(
    "application",
    [
        pytest.param(echo, id="in the head"),
        pytest.param(lambda _request: Response(body=b"x" * 10_000), id="in the body"),
    ],
)
def test_an_answer_that_drips_byte_by_byte_is_given_up_at_the_deadline(
    server: StandIn, application: Application
) -> None:
    server.application = application
    server.faults.add(
        StandInFault(kind=StandInFaultKind.DRIP, seconds=0.001 if application is not echo else 0.05)
    )
    with (
        client_of(server, answer_seconds=0.5) as client,
        pytest.raises(SourceUnavailable, match="did not respond in time"),
    ):
        client.get("/", {})


def test_an_answer_that_drips_fast_enough_comes_whole(server: StandIn) -> None:
    server.faults.add(StandInFault(kind=StandInFaultKind.DRIP, seconds=0.0001))
    with client_of(server) as client:
        assert client.get("/", {"q": "a"}).json() == {"query": {"q": "a"}}
        assert client.get("/", {"q": "b"}).json() == {"query": {"q": "b"}}


def test_an_answer_that_is_too_large_is_refused(server: StandIn) -> None:
    server.faults.add(StandInFault(body="x" * 10_000))
    with (
        client_of(server, body_bytes_max=9_999) as client,
        pytest.raises(SourceRefused, match="more than 9999 bytes"),
    ):
        client.get("/", {})


def test_a_redirect_is_not_followed(server: StandIn) -> None:
    server.faults.add(StandInFault(status=302, headers={"Location": "http://127.0.0.1:1/"}))
    with client_of(server) as client:
        answer = client.get("/", {})
        assert isinstance(client.failure_of(answer), SourceRefused)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 301])
def test_what_will_not_change_is_refused(server: StandIn, status: int) -> None:
    with client_of(server) as client:
        found = failure(client, status)
    assert isinstance(found, SourceRefused)
    assert found.permanent


@pytest.mark.parametrize("status", [408, 500, 502, 503, 504])
def test_what_may_change_is_unwell(server: StandIn, status: int) -> None:
    with client_of(server) as client:
        found = failure(client, status, **{"retry-after": "17"})
    assert isinstance(found, SourceUnavailable)
    assert (found.permanent, found.retry_after_seconds) == (False, 17.0)


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("30", 30),
        ("", 60),
        ("soon", 60),
        ("-5", 60),
        ("999999999", 86_400),
        (format_datetime(NOON + timedelta(minutes=2), usegmt=True), 120),
        (format_datetime(NOON - timedelta(minutes=2), usegmt=True), 0),
    ],
)
def test_a_rate_limit_says_until_when(server: StandIn, said: str, seconds: int) -> None:
    with client_of(server, clock=ManualClock(NOON)) as client:
        found = failure(client, 429, **{"retry-after": said})
    assert isinstance(found, RateLimitedUntil)
    assert found.until == NOON + timedelta(seconds=seconds)


def test_what_a_server_says_is_quoted_short_on_one_line_and_without_secrets(
    server: StandIn,
) -> None:
    with client_of(server) as client:
        quoted = client.quoted(f"bad\nkey {SECRET} " + "x" * 1000)
    assert quoted.startswith(": bad key *** xxx")
    assert len(quoted) < 310


@pytest.mark.parametrize(
    "url",
    [
        "ftp://host/",
        "host/path",
        "http://",
        "https://user:pw@host/",
        "https://h/?key=1",
        "http://[",
    ],
)
def test_a_base_url_is_plain_http(url: str) -> None:
    with pytest.raises(ConfigurationError, match="The shop is not a plain") as caught:
        checked_base_url(url, service="The shop")
    assert "pw" not in str(caught.value)
