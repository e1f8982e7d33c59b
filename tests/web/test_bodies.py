"""Bad input is refused with a problem that says what is wrong and where."""

import asyncio
import json
import socket
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
from starlette.types import Message

from support.web_client import Client
from tsuzuki.model.errors import UsageError
from tsuzuki.web.api import runs
from tsuzuki.web.parameters import PROBLEMS_MAX
from tsuzuki.web.problems import RequestError
from tsuzuki.web.security import bodies
from tsuzuki.web.security.bodies import _unique

EMIT = "events"


@pytest.mark.parametrize(
    ("raw", "status", "code"),
    [
        (b"{", 400, "not_json"),
        (b"", 422, "missing"),
        (b'{"event_type": NaN}', 400, "not_json"),
        (b'{"event_type": "a\xff"}', 400, "not_utf8"),
        (b'{"event_type": "a", "event_type": "b"}', 422, "duplicate_key"),
        (b'{"event_type": "a", "payload": {"a": 1, "a": 2}}', 422, "duplicate_key"),
        (b'{"event_type": "a", "payload": 9223372036854775808}', 422, "number_too_large"),
        (b'{"event_type": "a", "payload": -' + b"9" * 5000 + b"}", 422, "number_too_large"),
        (b'{"event_type": "a", "payload": 1e999}', 422, "number_too_large"),
        (b'{"event_type": "a", "payload": "\\ud800"}', 422, "not_text"),
        (b'{"event_type": "a", "payload": ' + b"[" * 100 + b"]" * 100 + b"}", 422, "body_too_deep"),
        (b"[" * 500_000, 422, "body_too_deep"),
        (b'{"event_type": "' + b"a" * 1_100_000 + b'"}', 413, "body_too_large"),
        (b'{"event_type": "a", "paylod": 1}', 422, "unknown_field"),
        (b'{"event_type": 7}', 422, "invalid_value"),
        (b'{"event_type": ""}', 422, "invalid_value"),
        (b'{"event_type": "a\\u0000b"}', 422, "not_text"),
        (b"[]", 422, "invalid_value"),
        (b"null", 422, "invalid_value"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_a_bad_body_is_refused(client: Client, raw: bytes, status: int, code: str) -> None:
    answer = client.request("POST", EMIT, raw=raw)
    assert (answer.status, answer.code) == (status, code), answer.body[:300]


@pytest.mark.parametrize("path", ["/api/v1/sign-in", "/api/v1/setup"])
def test_a_large_body_is_refused_by_a_public_route(client: Client, path: str) -> None:
    answer = client.as_(None).request("POST", path, raw=b"[" + b"1," * 524_000 + b"1]")
    assert (answer.status, answer.code) == (413, "body_too_large")


def test_a_large_form_is_refused_by_a_public_route(client: Client) -> None:
    answer = client.as_(None).request(
        "POST",
        "/sign-in",
        raw=b"name=a&password=" + b"b" * 20_000,
        headers={"Content-Type": "application/x-www-form-urlencoded"},
    )
    assert answer.status == 413


@pytest.mark.parametrize(("length", "is_on_loop"), [(100, True), (60_000, False)])
@pytest.mark.parametrize("media_type", ["application/json", "application/other+json"])
def test_a_large_start_is_parsed_and_masked_beside_the_event_loop(
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
    length: int,
    is_on_loop: bool,
    media_type: str,
) -> None:
    seen: list[bool] = []

    def noted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            seen.append(asyncio._get_running_loop() is not None)
            return function(*given)

        return call

    monkeypatch.setattr(bodies, "parse_json", noted(bodies.parse_json))
    monkeypatch.setattr(runs, "run_out", noted(runs.run_out))
    raw = json.dumps({"arguments": {"text": "a" * length}}).encode()
    headers = {"Content-Type": media_type}
    answer = client.request("POST", "jobs/hello/runs", raw=raw, headers=headers)
    assert answer.status == 201, answer.body
    assert seen == [is_on_loop, is_on_loop]


@pytest.mark.parametrize("levels", [65, 600, 100_000])
def test_a_payload_of_a_form_is_not_nested_too_deep(client: Client, levels: int) -> None:
    body = urlencode({"event_type": "deep", "payload": "[" * levels, "form_key": "a"})
    form = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}
    answer = client.request("POST", "/events/emit", raw=body.encode(), headers=form)
    assert answer.status == 422, answer.body
    assert b"more than 64 levels" in answer.body


def test_what_is_wrong_with_the_payload_of_a_form_is_told(client: Client) -> None:
    body = urlencode({"event_type": "wrong", "payload": "{1", "form_key": "b"})
    form = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}
    answer = client.request("POST", "/events/emit", raw=body.encode(), headers=form)
    assert answer.status == 422, answer.body
    assert b"the payload is not JSON: Expecting property name" in answer.body


def test_a_client_that_leaves_before_its_body_has_arrived_is_no_fault_of_ours() -> None:
    messages: list[Message] = [
        {"type": "http.request", "body": b"{", "more_body": True},
        {"type": "http.disconnect"},
    ]

    async def receive() -> Message:
        return messages.pop(0)

    request = bodies.BoundedRequest({"type": "http", "headers": []}, receive)
    with pytest.raises(RequestError) as refused:
        asyncio.run(request.body())
    assert refused.value.specific_code == "body_incomplete"


def test_an_integer_of_64_bits_is_kept(client: Client) -> None:
    payload = {"most": 2**63 - 1, "least": -(2**63)}
    answer = client.post(EMIT, {"event_type": "numbers", "payload": payload})
    assert answer.json["payload"] == payload


def test_an_unknown_field_is_named_with_the_one_that_was_meant(client: Client) -> None:
    answer = client.post(EMIT, {"event_type": "a", "paylod": 1})
    (problem,) = answer.json["problems"]
    assert problem["where"] == "body.paylod"
    assert 'Did you mean "payload"?' in problem["hint"]


def test_a_misspelt_choice_is_answered_with_the_one_that_was_meant(client: Client) -> None:
    answer = client.get("runs?state=FAILD")
    assert (answer.status, answer.code) == (422, "invalid_value")
    assert answer.json["hint"] == 'Did you mean "FAILED"?'
    assert "hint" not in client.get("runs?state=42").json["problems"][0]


def test_an_unknown_parameter_is_named_with_the_one_that_was_meant(client: Client) -> None:
    answer = client.get("runs?stat=FAILED")
    assert (answer.status, answer.code) == (422, "unknown_parameter")
    assert answer.json["problems"][0]["where"] == "query.stat"
    assert 'Did you mean "state"?' in answer.json["hint"]


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_a_body_that_does_not_say_it_is_json_is_refused(client: Client, kind: str) -> None:
    answer = client.request(
        "POST", EMIT, raw=b'{"event_type": "a"}', headers={"Content-Type": kind}
    )
    assert (answer.status, answer.code) == (415, "not_json_type")


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("runs?state=FALED", 422, "invalid_value"),
        ("runs?limit=0", 422, "invalid_value"),
        ("runs?limit=100000", 422, "invalid_value"),
        ("runs?job=helo", 404, "job_unknown"),
        ("runs?state=FAILED&exclude_state=FAILED", 422, "filter_impossible"),
        (
            "runs?created_from=2026-01-02T00:00:00Z&created_until=2026-01-01T00:00:00Z",
            422,
            "filter_impossible",
        ),
        ("runs?created_from=2026-01-02T00:00:00", 422, "invalid_value"),
        ("runs?created_from=0", 422, "invalid_value"),
        ("commits/stats?until=0", 422, "invalid_value"),
        ("runs?worker=%00", 422, "not_text"),
        ("runs/0", 422, "invalid_value"),
        ("runs/9223372036854775808", 422, "invalid_value"),
        ("runs/9223372036854775807", 404, "run_unknown"),
        ("jobs/%00", 422, "not_text"),
        ("jobs/helo", 404, "job_unknown"),
        ("settings/leas_seconds", 404, "setting_unknown"),
        ("nothing", 404, "no_such_path"),
    ],
)
def test_what_cannot_be_asked_is_refused(client: Client, path: str, status: int, code: str) -> None:
    answer = client.get(path)
    assert (answer.status, answer.code) == (status, code), answer.body


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("jobs/hello/runs", {"priority": "5"}),
        ("jobs/hello/runs", {"priority": True}),
        ("jobs/hello/runs", {"delay_seconds": "5"}),
        ("jobs/hello/runs", {"delay_seconds": True}),
        ("jobs/hello/runs", {"arguments": []}),
        ("tokens", {"name": "t", "role": "viewer", "expires_in_seconds": "3600"}),
        ("failures/x/acknowledge", {"through": "1"}),
        ("bulk", {"verb": "cancel", "filter": {"created_from": 0}}),
        ("books/jobs/x/reset", {"confirm": 1}),
    ],
)
def test_a_value_of_another_type_is_not_converted(client: Client, path: str, body: Any) -> None:
    answer = client.post(path, body)
    assert (answer.status, answer.code) == (422, "invalid_value"), answer.body
    assert answer.json["problems"][0]["where"].startswith("body.")


def test_a_problem_has_what_where_and_next(client: Client) -> None:
    answer = client.get("jobs/helo")
    problem: dict[str, Any] = json.loads(answer.body)
    assert problem == {
        "type": "urn:tsuzuki:problem:job_unknown",
        "title": "Not Found",
        "status": 404,
        "code": "job_unknown",
        "detail": "there is no job 'helo'",
        "hint": problem["hint"],
    }
    assert 'Did you mean "hello"?' in problem["hint"]


class CountedKey(str):
    """A key that counts how often it is compared."""

    __slots__ = ()
    __hash__ = str.__hash__
    compared = 0

    def __eq__(self, other: object) -> bool:
        CountedKey.compared += 1
        return str.__eq__(self, other)


def test_a_doubled_key_is_found_in_one_pass_however_many_keys_there_are() -> None:
    pairs = [(CountedKey(f"key {number}"), 0) for number in [*range(500), 499]]
    with pytest.raises(UsageError, match="duplicate key 'key 499'"):
        _unique(pairs)
    assert CountedKey.compared < 5 * len(pairs)


@pytest.mark.parametrize("noun", ["field", "parameter"])
def test_of_many_wrong_parts_the_first_are_told_and_all_are_counted(
    client: Client, noun: str
) -> None:
    names = [f"unknown{number}" for number in range(PROBLEMS_MAX + 7)]
    answer = (
        client.post(EMIT, {"event_type": "a", **dict.fromkeys(names, 1)})
        if noun == "field"
        else client.get("runs?" + "&".join(f"{name}=1" for name in names))
    )
    assert (answer.status, answer.code) == (422, f"unknown_{noun}")
    assert answer.json["detail"].endswith(f"(and {len(names) - 1} more)")
    assert len(answer.json["problems"]) == PROBLEMS_MAX


def test_a_request_that_tells_its_length_twice_is_refused_and_its_connection_closed(
    client: Client,
) -> None:
    address = urlsplit(client.url)
    request = (
        "POST /api/v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 4\r\n"
        "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    )
    with socket.create_connection((address.hostname, address.port), timeout=20) as sent:
        sent.sendall(request.encode())
        said = b"".join(iter(lambda: sent.recv(65_536), b""))
    assert said.startswith(b"HTTP/1.1 400")
    assert said.count(b"HTTP/1.1") == 1
