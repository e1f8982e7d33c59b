"""Webhooks: a delivery becomes one event, however often it comes; a wrong one becomes none."""

import hashlib
import hmac
from pathlib import Path

import pytest

from support.threads import at_once
from tsuzuki.config import load_configuration
from tsuzuki.model.errors import (
    ConfigurationError,
    Conflict,
    NotAuthenticated,
    NotFound,
    UsageError,
)
from tsuzuki.services.events import Events
from tsuzuki.services.webhooks import Webhooks
from tsuzuki.store.sql.database import Database

FILE = """\
webhooks:
  shop:
    kind: github
    secret: ${SHOP_SECRET}
    event: shop.changed
  other:
    kind: gitlab
    secret: ${OTHER_SECRET}
"""
ENVIRON = {"SHOP_SECRET": "secret of shop"}
BODY = b'{"ref": "refs/heads/main"}'


@pytest.fixture
def events(database: Database) -> Events:
    return Events(database=database)


@pytest.fixture
def webhooks(tmp_path: Path, events: Events, database: Database) -> Webhooks:
    (tmp_path / "tsuzuki.yaml").write_text(FILE)
    configuration = load_configuration(environ=ENVIRON, cwd=tmp_path)
    return Webhooks(database=database, webhooks=configuration.webhooks, events=events)


def signed(body: bytes = BODY, delivery_id: str = "one") -> dict[str, str]:
    digest = hmac.new(b"secret of shop", body, hashlib.sha256).hexdigest()
    return {
        "x-hub-signature-256": f"sha256={digest}",
        "x-github-delivery": delivery_id,
        "x-github-event": "push",
    }


def test_a_delivery_becomes_an_event_with_all_that_was_sent(webhooks: Webhooks) -> None:
    assert webhooks.names() == ["other", "shop"]
    received = webhooks.receive("shop", headers=signed(), body=BODY)
    assert received.is_new
    assert received.event.event_type == "shop.changed"
    assert received.event.dedupe_key == "webhook:shop:one"
    assert received.event.payload == {
        "webhook": "shop",
        "id": "one",
        "event": "push",
        "body": {"ref": "refs/heads/main"},
    }


def test_of_ten_times_the_same_delivery_one_is_new(webhooks: Webhooks, events: Events) -> None:
    received = at_once(10, lambda _: webhooks.receive("shop", headers=signed(), body=BODY))
    assert sum(one.is_new for one in received) == 1
    assert len({one.event.id for one in received}) == 1
    with pytest.raises(NotAuthenticated) as replayed:
        webhooks.receive("shop", headers=signed(delivery_id="two"), body=BODY)
    assert replayed.value.specific_code == "signature_replayed"
    other = BODY + b"\n"
    assert webhooks.receive("shop", headers=signed(other, "two"), body=other).is_new
    assert len(events.find()) == 2


def test_another_body_with_an_id_that_was_used_is_refused(
    webhooks: Webhooks, events: Events
) -> None:
    first = webhooks.receive("shop", headers=signed(), body=BODY).event
    other = b'{"ref": "refs/heads/other"}'
    with pytest.raises(Conflict) as refused:
        webhooks.receive("shop", headers=signed(other), body=other)
    assert refused.value.specific_code == "event_key_used"
    assert events.find() == [first]


def test_what_is_not_proved_leaves_no_event(webhooks: Webhooks, events: Events) -> None:
    with pytest.raises(NotAuthenticated):
        webhooks.receive("shop", headers=signed(), body=BODY + b" ")
    with pytest.raises(NotFound) as unknown:
        webhooks.receive("shpo", headers=signed(), body=BODY)
    assert "shop" not in f"{unknown.value.as_dict()}"  # a stranger learns no names
    with pytest.raises(ConfigurationError) as unset:
        webhooks.receive("other", headers={"X-Gitlab-Token": ""}, body=BODY)
    assert unset.value.specific_code == "variable_missing"
    assert events.find() == []


@pytest.mark.parametrize(
    "body", [b"payload=%7B%7D", b"\xff", b'{"a": NaN}', b"[" * 100_000, b'{"a": "\\ud800"}']
)
def test_a_body_that_is_no_json_is_refused_after_its_signature(
    body: bytes, webhooks: Webhooks, events: Events
) -> None:
    with pytest.raises(UsageError) as refused:
        webhooks.receive("shop", headers=signed(body), body=body)
    assert refused.value.specific_code in ("webhook_body", "not_json")
    assert events.find() == []


def test_an_empty_body_is_an_event_too(webhooks: Webhooks) -> None:
    assert webhooks.receive("shop", headers=signed(b""), body=b"").event.payload["body"] is None
