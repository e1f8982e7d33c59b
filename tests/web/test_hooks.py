"""Webhooks over HTTP: a delivery becomes one event, and a wrong one learns nothing."""

import hashlib
import hmac
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from support.web_client import Client, HttpAnswer, Served, served_application
from tsuzuki.web.security.bodies import BODY_BYTES_MAX

FILE = """\
webhooks:
  shop:
    kind: github
    secret: ${SHOP_SECRET}
    event: shop.changed
  open:
    kind: gitlab
    secret: ${SHOP_SECRET}
  unset:
    kind: gitlab
    secret: ${UNSET_SECRET}
"""
BODY = b'{"ref": "refs/heads/main"}'


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder: Path = tmp_path_factory.mktemp("workspace")
    (folder / "tsuzuki.yaml").write_text(FILE, encoding="utf-8")
    with served_application(folder, environ={"SHOP_SECRET": "secret of shop"}) as served:
        yield served


def deliver(
    client: Client,
    body: bytes = BODY,
    *,
    delivery_id: str,
    signed: bytes | None = None,
    name: str = "shop",
) -> HttpAnswer:
    digest = hmac.new(b"secret of shop", signed or body, hashlib.sha256).hexdigest()
    headers = {"X-Hub-Signature-256": f"sha256={digest}", "X-GitHub-Delivery": delivery_id}
    return client.as_(None).request("POST", f"/hooks/{name}", raw=body, headers=headers)


def test_a_delivery_becomes_one_event_however_often_it_comes(client: Client) -> None:
    first = deliver(client, delivery_id="one")
    assert (first.status, first.json["is_new"]) == (202, True)
    again = deliver(client, delivery_id="one")
    event_id = first.json["event_id"]
    assert (again.status, again.json) == (200, {"event_id": event_id, "is_new": False})
    events = client.get("events?event_type=shop.changed").json["items"]
    assert [event["id"] for event in events] == [event_id]
    assert events[0]["payload"]["body"] == {"ref": "refs/heads/main"}


def test_a_wrong_delivery_is_refused_in_the_same_words_and_becomes_no_event(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    before = client.get("events?count=true").json["count"]
    changed = deliver(client, BODY + b" ", delivery_id="two", signed=BODY)
    unsigned = client.as_(None).request("POST", "/hooks/shop", raw=BODY)
    not_json = deliver(client, b"{", delivery_id="three", signed=BODY)
    for refused in (changed, unsigned, not_json):
        assert (refused.status, refused.code) == (401, "webhook_refused")
        assert refused.body == changed.body
    assert "signature_wrong" in caplog.text
    assert "signature_missing" in caplog.text
    assert client.get("events?count=true").json["count"] == before


def test_the_same_bytes_under_another_id_are_a_replay(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    body = b'{"ref": "refs/heads/replayed"}'
    assert deliver(client, body, delivery_id="first").status == 202
    before = client.get("events?count=true").json["count"]
    for other in ("second", ""):
        replayed = deliver(client, body, delivery_id=other)
        assert (replayed.status, replayed.code) == (401, "webhook_refused")
    assert "signature_replayed" in caplog.text
    assert deliver(client, body, delivery_id="first").status == 200
    assert client.get("events?count=true").json["count"] == before


def test_what_cannot_be_taken_is_told(client: Client) -> None:
    unknown = deliver(client, delivery_id="four", name="none")
    assert (unknown.status, unknown.code) == (404, "webhook_unknown")
    signed = deliver(client, b"{", delivery_id="five")
    assert (signed.status, signed.code) == (422, "webhook_body")
    deep = deliver(client, b"[" * 900 + b"]" * 900, delivery_id="deep")
    assert (deep.status, deep.code) == (422, "webhook_body")
    large = deliver(client, b" " * (BODY_BYTES_MAX + 1), delivery_id="six")
    assert large.status == 413
    unset = deliver(client, delivery_id="seven", name="unset")
    assert (unset.status, unset.code) == (503, "webhook_unusable")
    assert "UNSET_SECRET" not in unset.body.decode()


@pytest.mark.parametrize(
    ("name", "headers", "status"),
    [
        ("none", {"X-Hub-Signature-256": "sha256=0"}, 404),
        ("shop", {}, 401),
        ("open", {"X-Gitlab-Token": "wrong"}, 401),
    ],
)
def test_a_body_is_not_waited_for_if_name_or_headers_are_wrong(
    served: Served, name: str, headers: dict[str, str], status: int
) -> None:
    """The answer comes although the body never does."""
    lines = [f"POST /hooks/{name} HTTP/1.1", "Host: 127.0.0.1", "Content-Length: 900000"]
    lines += [f"{header}: {value}" for header, value in headers.items()]
    address = urlsplit(served.client.url)
    with socket.create_connection((address.hostname, address.port), timeout=20) as sent:
        sent.sendall("\r\n".join([*lines, "", "{"]).encode())
        assert sent.recv(12) == f"HTTP/1.1 {status}".encode()


@pytest.mark.parametrize("event_type", ["shop.changed", "webhook.open", "webhook.other"])
def test_an_event_that_looks_like_a_delivery_needs_the_right_to_write_jobs(
    client: Client, event_type: str
) -> None:
    event = {"event_type": event_type, "payload": {}}
    refused = client.as_("operator").post("events", event)
    assert (refused.status, refused.code) == (403, "event_type_reserved")
    assert client.as_("only-events:emit").post("events", event).status == 403
    assert client.post("events", event).status == 201
    assert client.as_("operator").post("events", {"event_type": "shop.other"}).status == 201
