"""The start of a run is answered directly, and exactly as by its route. Another type of JSON goes by the route."""

from typing import Any
from urllib.parse import quote

import pytest

from support.web_client import SESSION_COOKIE, Client, HttpAnswer
from tsuzuki.web.api import runs

DIRECT = "application/json"
BY_THE_ROUTE = "application/other+json"
OWN = ("id", "created_at", "scheduled_for", "work_key")
"""Of each run."""


def start(
    client: Client, media_type: str, raw: bytes = b"{}", *, job: str = "hello", **headers: str
) -> HttpAnswer:
    sent = {"Content-Type": media_type, **{k.replace("_", "-"): v for k, v in headers.items()}}
    return client.request("POST", f"jobs/{job}/runs", raw=raw, headers=sent)


def told(answer: HttpAnswer) -> tuple[int, dict[str, str], Any]:
    """Without what is of one run alone."""
    body = answer.json
    headers = {k: v for k, v in answer.headers.items() if k not in ("date", "content-length")}
    if answer.status == 201:
        assert headers.pop("location") == f"/api/v1/runs/{body['id']}"
        assert list(body) == list(runs.RunOut.model_fields)
        body = {name: value for name, value in body.items() if name not in OWN}
    return answer.status, headers, body


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{}",
        b"null",
        b'{"arguments": {"n": 1, "password": "abcdefgh"}, "priority": 3, "concurrency_key": "k"}',
        b'{"delay_seconds": 60.5}',
        b'{"delay_seconds": -1, "priority": 1e9, "arguments": []}',
        b'{"priority": true}',
        b'{"argument": {}}',
        b"[]",
        b'"text"',
        b"0",
        b'{"priority": 1, "priority": 2}',
        b"{",
        b"\xff",
    ],
)
def test_every_body_is_answered_as_by_the_route(client: Client, raw: bytes) -> None:
    assert told(start(client, DIRECT, raw)) == told(start(client, BY_THE_ROUTE, raw))


@pytest.mark.parametrize(
    ("job", "headers"),
    [
        ("none", {}),
        ("x" * 100, {}),
        ("x" * 101, {}),
        (quote("a\x00b"), {}),
        (quote("あ"), {}),
        ("hello", {"Prefer": "wait=0"}),
        ("hello", {"Prefer": "respond-async"}),
        ("hello", {"Prefer": "wait=1"}),
        ("hello", {"Idempotency_Key": "a b"}),
        ("hello", {"Host": "elsewhere"}),
        ("hello", {"Origin": "http://elsewhere", "Authorization": "Basic x"}),
        ("hello", {"Sec_Fetch_Site": "cross-site", "Cookie": f"{SESSION_COOKIE}=admin"}),
    ],
)
def test_every_name_and_header_is_answered_as_by_the_route(
    client: Client, job: str, headers: dict[str, str]
) -> None:
    direct = start(client, DIRECT, job=job, **headers)
    assert told(direct) == told(start(client, BY_THE_ROUTE, job=job, **headers))


@pytest.mark.parametrize("token", ["admin", "operator", "viewer", "narrow", "unknown", None])
def test_everyone_is_answered_as_by_the_route(client: Client, token: str | None) -> None:
    direct = start(client.as_(token), DIRECT)
    assert told(direct) == told(start(client.as_(token), BY_THE_ROUTE))


def test_an_unknown_parameter_is_refused_and_a_key_is_kept(client: Client) -> None:
    assert client.post("jobs/hello/runs?cout=1", {}).code == "unknown_parameter"
    first, again = (start(client, DIRECT, Idempotency_Key="direct") for _ in range(2))
    assert first.body == again.body
    assert again.headers["idempotency-replayed"] == "true"


def test_the_endpoint_is_called_for_another_type_of_json_only(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(**_values: object) -> None:
        raise RuntimeError("called")

    monkeypatch.setattr(runs.START.dependant, "call", fail)
    assert start(client, DIRECT).status == 201
    assert start(client, BY_THE_ROUTE).status == 500
