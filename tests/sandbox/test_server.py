"""The kit of the stand-ins: what is asked is answered and logged; what was ordered to fail fails."""

import http.client
import json
import socket
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import urlsplit

import pytest

from support.daemons import eventually
from tsuzuki.sandbox.exchange import Response, Route, Router, StandInRequest, Stream, json_response
from tsuzuki.sandbox.faults import StandInFault, StandInFaultKind
from tsuzuki.sandbox.server import StandIn


def greet(request: StandInRequest) -> Response:
    return json_response({"name": request.params["name"], "query": dict(request.query)})


def numbers(request: StandInRequest) -> Response:
    page = int(request.query.get("page", "1"))
    return json_response([10 * page, 10 * page + 1, 10 * page + 2], headers={"X-Next-Page": "2"})


def fail(request: StandInRequest) -> Response:
    raise RuntimeError(request.path)


def count_up(request: StandInRequest) -> Response:
    stream = Stream(chunks=lambda: (b"%d," % number for number in range(3)))
    length = 6 if request.query.get("length") else None
    return Response(stream=replace(stream, length=length), content_type="")


def unchanged(request: StandInRequest) -> Response:
    return Response(status=304, headers={"ETag": '"1"'}, body=b"never sent")


def missing(request: StandInRequest) -> Response:
    return json_response({"message": "404 Not Found"}, status=404)


class Controlled(Router):
    control_routes = (Route("GET", "/_sandbox/own", unchanged),)


@pytest.fixture
def stand_in() -> Iterator[StandIn]:
    routes = [
        Route("GET", "/greet/{name}", greet),
        Route("GET", "/numbers", numbers),
        Route("GET", "/broken", fail),
        Route("GET", "/count", count_up),
        Route("GET", "/unchanged", unchanged),
    ]
    application = Controlled(routes, otherwise=missing)
    with StandIn(application) as server:
        yield server


@pytest.fixture
def client(stand_in: StandIn) -> Iterator[http.client.HTTPConnection]:
    parts = urlsplit(stand_in.url)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=10)
    yield connection
    connection.close()


def ask(client: http.client.HTTPConnection, target: str) -> tuple[int, bytes]:
    client.request("GET", target)
    response = client.getresponse()
    return response.status, response.read()


def order(client: http.client.HTTPConnection, body: str) -> int:
    client.request("POST", "/_sandbox/faults", body=body)
    response = client.getresponse()
    response.read()
    return response.status


def test_a_route_gets_its_decoded_segment_and_query(client: http.client.HTTPConnection) -> None:
    status, body = ask(client, "/greet/a%2Fb%23c?page=2&x=")
    assert status == 200
    assert json.loads(body) == {"name": "a/b#c", "query": {"page": "2", "x": ""}}


def test_one_connection_serves_many_requests(
    client: http.client.HTTPConnection, stand_in: StandIn
) -> None:
    ask(client, "/greet/one")
    kept = client.sock
    ask(client, "/greet/two")
    assert client.sock is kept
    assert [seen.request.path for seen in stand_in.requests] == ["/greet/one", "/greet/two"]


def test_what_no_route_names_is_answered_otherwise(client: http.client.HTTPConnection) -> None:
    assert ask(client, "/greet/a/b")[0] == 404


def test_a_stand_in_that_fails_says_500_and_goes_on(client: http.client.HTTPConnection) -> None:
    assert ask(client, "/broken")[0] == 500
    assert ask(client, "/greet/you")[0] == 200


def test_a_fault_takes_the_nth_matching_request_and_no_other(
    client: http.client.HTTPConnection, stand_in: StandIn
) -> None:
    stand_in.faults.add(
        StandInFault(path="/greet/*", skip=1, times=2, status=429, headers={"Retry-After": "7"})
    )
    statuses = [ask(client, path)[0] for path in ("/greet/a", "/x", "/greet/b", "/greet/c")]
    assert statuses == [200, 404, 429, 429]
    assert ask(client, "/greet/d")[0] == 200
    assert stand_in.faults.waiting == []
    assert stand_in.count("/greet/*") == 4


def test_a_fault_may_name_the_query(client: http.client.HTTPConnection, stand_in: StandIn) -> None:
    stand_in.faults.add(StandInFault(path="*?*page=2*", status=500))
    assert ask(client, "/greet/a?page=1")[0] == 200
    assert ask(client, "/greet/a?page=2")[0] == 500


def test_a_cut_body_is_shorter_than_announced(
    client: http.client.HTTPConnection, stand_in: StandIn
) -> None:
    stand_in.faults.add(StandInFault(kind=StandInFaultKind.CUT))
    client.request("GET", "/greet/you")
    response = client.getresponse()
    with pytest.raises(http.client.IncompleteRead):
        response.read()


def test_html_comes_with_200(client: http.client.HTTPConnection, stand_in: StandIn) -> None:
    stand_in.faults.add(StandInFault(kind=StandInFaultKind.HTML))
    status, body = ask(client, "/greet/you")
    assert (status, body[:15]) == (200, b"<!DOCTYPE html>")


@pytest.mark.parametrize(("rows", "sent"), [(0, []), (2, [20, 21]), (9, [20, 21, 22])])
def test_a_short_list_is_the_beginning_of_the_true_one(
    client: http.client.HTTPConnection, stand_in: StandIn, rows: int, sent: list[int]
) -> None:
    stand_in.faults.add(
        StandInFault(kind=StandInFaultKind.SHORT, rows=rows, headers={"X-Next-Page": ""})
    )
    client.request("GET", "/numbers?page=2")
    response = client.getresponse()
    assert (json.loads(response.read()), response.headers["X-Next-Page"]) == (sent, "")


def test_a_swapped_answer_is_the_true_one_to_another_query(
    client: http.client.HTTPConnection, stand_in: StandIn
) -> None:
    fault = StandInFault(
        kind=StandInFaultKind.SWAPPED, query={"page": "2"}, headers={"X-Next-Page": "4"}
    )
    stand_in.faults.add(fault)
    client.request("GET", "/numbers?page=3")
    response = client.getresponse()
    assert (json.loads(response.read()), response.headers["X-Next-Page"]) == ([20, 21, 22], "4")
    assert json.loads(ask(client, "/numbers?page=3")[1]) == [30, 31, 32]


@pytest.mark.parametrize("target", ["/count", "/count?length=yes"])
def test_a_stream_is_sent_whole_and_the_connection_goes_on(
    client: http.client.HTTPConnection, target: str
) -> None:
    assert ask(client, target) == (200, b"0,1,2,")
    assert ask(client, "/greet/you")[0] == 200


@pytest.mark.parametrize("target", ["/count", "/count?length=yes"])
def test_a_cut_stream_ends_before_its_end(
    client: http.client.HTTPConnection, stand_in: StandIn, target: str
) -> None:
    stand_in.faults.add(StandInFault(kind=StandInFaultKind.CUT))
    client.request("GET", target)
    with pytest.raises(http.client.IncompleteRead):
        client.getresponse().read()


def test_a_dripping_stream_is_the_true_one(
    client: http.client.HTTPConnection, stand_in: StandIn
) -> None:
    stand_in.faults.add(StandInFault(kind=StandInFaultKind.DRIP, seconds=0.001))
    assert ask(client, "/count") == (200, b"0,1,2,")


def test_an_endless_stream_ends_with_its_client() -> None:
    made: list[int] = []

    def endless() -> Iterator[bytes]:
        try:
            while True:
                yield b"x" * 65_536
        finally:
            made.append(1)

    with StandIn(lambda _: Response(stream=Stream(chunks=endless, length=10**10))) as stand_in:
        parts = urlsplit(stand_in.url)
        client = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=10)
        client.request("GET", "/")
        response = client.getresponse()
        assert response.length == 10**10
        assert response.read(1_000_000) == b"x" * 1_000_000
        response.close()
        client.close()
        eventually(lambda: made == [1], what="the stream to end")


def test_a_stand_in_stops_while_a_stream_has_no_reader() -> None:
    body = Stream(chunks=lambda: iter(lambda: b"x" * 65_536, b""))
    stand_in = StandIn(lambda _: Response(stream=body))
    stand_in.start()
    parts = urlsplit(stand_in.url)
    client = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=10)
    client.request("GET", "/")
    with client.getresponse():
        stand_in.stop()
    client.close()


def test_an_unchanged_answer_has_neither_type_nor_length(
    client: http.client.HTTPConnection,
) -> None:
    client.request("GET", "/unchanged")
    response = client.getresponse()
    assert (response.status, response.read(), response.headers["ETag"]) == (304, b"", '"1"')
    assert not {"Content-Type", "Content-Length"} & {*response.headers}
    assert ask(client, "/greet/you")[0] == 200


def test_an_unchanged_answer_ends_with_its_head(stand_in: StandIn) -> None:
    parts = urlsplit(stand_in.url)
    with socket.create_connection((str(parts.hostname), parts.port or 0), timeout=10) as link:
        link.sendall(b"GET /unchanged HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        with link.makefile("rb") as answer:
            assert answer.read().endswith(b"\r\n\r\n")


def test_a_stand_in_adds_control_routes_of_its_own(
    client: http.client.HTTPConnection, stand_in: StandIn
) -> None:
    assert ask(client, "/_sandbox/own")[0] == 304
    assert stand_in.count() == 0


def test_a_reset_connection_is_reset(client: http.client.HTTPConnection, stand_in: StandIn) -> None:
    stand_in.faults.add(StandInFault(kind=StandInFaultKind.RESET))
    with pytest.raises(ConnectionResetError):
        ask(client, "/greet/you")
    client.close()
    assert ask(client, "/greet/you")[0] == 200


def test_a_hanging_request_is_answered_when_released(
    client: http.client.HTTPConnection, stand_in: StandIn
) -> None:
    stand_in.faults.add(StandInFault(kind=StandInFaultKind.HANG))
    client.request("GET", "/greet/you")
    eventually(lambda: stand_in.faults.held == 1, what="a request to be held")
    stand_in.faults.release()
    assert client.getresponse().status == 200


def test_a_hanging_request_ends_with_its_client(
    client: http.client.HTTPConnection, stand_in: StandIn
) -> None:
    stand_in.faults.add(StandInFault(kind=StandInFaultKind.HANG))
    client.request("GET", "/greet/you")
    eventually(lambda: stand_in.faults.held == 1, what="a request to be held")
    client.close()
    eventually(lambda: stand_in.count() == 1, what="the held request to be given up")
    assert stand_in.requests[0].status is None


def test_a_slow_answer_is_the_true_one(
    client: http.client.HTTPConnection, stand_in: StandIn
) -> None:
    stand_in.faults.add(StandInFault(kind=StandInFaultKind.SLOW, seconds=0.1))
    assert ask(client, "/greet/you")[0] == 200


def test_faults_are_ordered_over_http_too(
    client: http.client.HTTPConnection, stand_in: StandIn
) -> None:
    assert order(client, '{"path": "/greet/*", "status": 503, "body": {"message": "no"}}') == 201
    assert ask(client, "/greet/you") == (503, b'{"message": "no"}')
    assert stand_in.count("/_sandbox*") == 0


@pytest.mark.parametrize(
    "body", ["", "[]", '{"kind": "explode"}', '{"sttus": 3}', '{"times": 0}', '{"status": 9}']
)
def test_what_is_no_fault_is_refused(
    client: http.client.HTTPConnection, stand_in: StandIn, body: str
) -> None:
    assert order(client, body) == 400
    assert stand_in.faults.waiting == []


def test_the_log_over_http_hides_secrets(client: http.client.HTTPConnection) -> None:
    client.request("GET", "/greet/you", headers={"Private-Token": "glpat-secret"})
    client.getresponse().read()
    _, body = ask(client, "/_sandbox/requests")
    assert b"glpat-secret" not in body
    assert json.loads(body)[0]["headers"]["Private-Token"] == "***"


def test_the_log_over_http_hides_keys_of_a_query(client: http.client.HTTPConnection) -> None:
    ask(client, "/greet/you?key=AIza-secret&q=x")
    _, body = ask(client, "/_sandbox/requests")
    assert json.loads(body)[0]["target"] == "/greet/you?key=***&q=x"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({}, 200),
    ],
)
def test_a_page_of_another_origin_may_not_look_at_the_sandbox(
    client: http.client.HTTPConnection, headers: dict[str, str], status: int
) -> None:
    client.request("GET", "/_sandbox", headers=headers)
    response = client.getresponse()
    response.read()
    assert response.status == status


def test_a_stopped_stand_in_leaves_no_connection_and_no_listener() -> None:
    stand_in = StandIn(missing)
    stand_in.start()
    parts = urlsplit(stand_in.url)
    client = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=10)
    ask(client, "/")
    stand_in.stop()
    assert client.sock.recv(1) == b""
    client.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((str(parts.hostname), parts.port or 0), timeout=10)
