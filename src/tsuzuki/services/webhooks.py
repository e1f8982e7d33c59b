"""Webhooks: requests of other services that become events, once each, after their signature was checked.

The bytes of the body are checked as they came, before anything is read out of them. The id of a delivery is the
dedupe key of its event, so that one that is sent again, or replayed, emits nothing. GitHub signs the body alone: the
same bytes under another id are a replay, and refused for as long as they are remembered.
"""

import hashlib
import json
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tsuzuki.config import Webhook
from tsuzuki.model.access import Principal
from tsuzuki.model.errors import (
    ConfigurationError,
    NotAuthenticated,
    NotFound,
    UsageError,
)
from tsuzuki.model.jsontext import is_too_deep
from tsuzuki.model.webhook_signatures import WebhookKind, check_headers, verify
from tsuzuki.services.events import Events, check_emitter
from tsuzuki.store import api_requests
from tsuzuki.store.events import Event
from tsuzuki.store.sql.database import Database

EXPIRED_AT_ONCE = 20


@dataclass(frozen=True, kw_only=True)
class Received:
    """`is_new` is false if the same delivery had come before; the event is that of the first one then."""

    event: Event
    is_new: bool


@dataclass(frozen=True, kw_only=True)
class WebhookView:
    """A webhook of the configuration. `problem`: why it cannot be used now. `last_event` is the newest one of its
    type; `listeners` are the jobs that run on it."""

    webhook: Webhook
    problem: ConfigurationError | None
    last_event: Event | None
    listeners: list[str]


class Webhooks:
    def __init__(self, *, database: Database, webhooks: Iterable[Webhook], events: Events) -> None:
        self._database = database
        self._webhooks = {webhook.name: webhook for webhook in webhooks}
        self._events = events

    def names(self) -> list[str]:
        """The webhooks that the configuration has."""
        return sorted(self._webhooks)

    def find(self) -> list[WebhookView]:
        """All of them by name, with what became of them."""
        return [self._view(self._webhooks[name]) for name in self.names()]

    def _view(self, webhook: Webhook) -> WebhookView:
        problem = None
        try:
            webhook.secrets()
        except ConfigurationError as found:
            problem = found
        newest = self._events.find(event_type=webhook.event, limit=1)
        return WebhookView(
            webhook=webhook,
            problem=problem,
            last_event=newest[0] if newest else None,
            listeners=self._events.listeners(webhook.event),
        )

    def check_emitter(self, event_type: str, by: Principal) -> None:
        """Refuse a caller who would emit an event as if it were a signed delivery. Raises `NotPermitted`."""
        check_emitter(event_type, (webhook.event for webhook in self._webhooks.values()), by)

    def check_headers(self, name: str, headers: Mapping[str, str]) -> None:
        """Refuse a delivery before its body is read, if its name or its headers are enough for that. Raises as
        `receive`."""
        webhook = self._named(name)
        check_headers(
            webhook.kind,
            secrets=webhook.secrets(),
            headers=headers,
            secret_header=webhook.header,
        )

    def receive(self, name: str, *, headers: Mapping[str, str], body: bytes) -> Received:
        """Check a delivery and store its event. Header names in any case. Raises `NotFound` (`webhook_unknown`),
        `NotAuthenticated` (`signature_missing`, `signature_wrong`, `signature_stale`, `signature_replayed`),
        `Conflict` (`event_key_used`) for another body with an id that was used, `UsageError` for a body that is
        not JSON, `ConfigurationError` if the secret is not set."""
        webhook = self._named(name)
        delivery = verify(
            webhook.kind,
            secrets=webhook.secrets(),
            headers=headers,
            body=body,
            now=self._database.clock.now(),
            secret_header=webhook.header,
        )
        parsed = _parsed(body)
        if webhook.kind is WebhookKind.GITHUB:
            self._refuse_replay(name, body, delivery.id)
        payload = {
            "webhook": name,
            "id": delivery.id,
            "event": delivery.event or _type_in(parsed),
            "body": parsed,
        }
        key = None if delivery.id is None else f"webhook:{name}:{delivery.id}"
        event, is_new = self._events.emit(
            webhook.event, payload, dedupe_key=key, actor=f"webhook:{name}"
        )
        return Received(event=event, is_new=is_new)

    def _named(self, name: str) -> Webhook:
        if name not in self._webhooks:
            raise NotFound(
                "there is no webhook with this name",
                hint="Define webhooks under `webhooks` in tsuzuki.yaml.",
                code="webhook_unknown",
            )
        return self._webhooks[name]

    def _refuse_replay(self, name: str, body: bytes, delivery_id: str | None) -> None:
        """Remember under which id these bytes came, for a day. The same id may come again: its event is stored
        after this, and the process can die in between."""
        sender, key = f"webhook {name}", f"body {hashlib.sha256(body).hexdigest()}"
        came_as = delivery_id or f"without an id, {secrets.token_hex(16)}"
        with self._database.write() as connection:
            api_requests.delete_expired(connection, limit=EXPIRED_AT_ONCE)
            is_new = api_requests.claim(
                connection,
                actor=sender,
                key=key,
                request_id=secrets.token_hex(16),
                fingerprint=came_as,
                claim=secrets.token_hex(16),
            )
            earlier = None if is_new else api_requests.get(connection, actor=sender, key=key)
        if earlier is not None and earlier.fingerprint != came_as:
            raise NotAuthenticated(
                "the same body was already received under another ID",
                hint="If bodies of this sender can repeat, use the webhook kind standard.",
                code="signature_replayed",
            )


def _parsed(body: bytes) -> Any:
    """The JSON of a body; None for an empty one."""
    if not body.strip():
        return None
    if is_too_deep(body):
        raise _not_json()
    try:
        return json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
    except ValueError:
        raise _not_json() from None


def _not_json() -> UsageError:
    return UsageError(
        "the webhook's body is not JSON, or is nested too deeply",
        hint="Let the sender use the content type application/json.",
        code="webhook_body",
    )


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _type_in(parsed: Any) -> str | None:
    """What a body itself calls its event, as in Standard Webhooks."""
    kind = parsed.get("type") if isinstance(parsed, dict) else None
    return kind if isinstance(kind, str) else None
