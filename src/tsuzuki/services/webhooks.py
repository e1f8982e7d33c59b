"""Webhooks: requests of other services that become events, once each, after their signature was checked.

The bytes of the body are checked as they came, before anything is read out of them. The id of a delivery is the
dedupe key of its event, so that one that is sent again, or replayed, emits nothing.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tsuzuki.config import Webhook
from tsuzuki.model.clock import Clock
from tsuzuki.model.errors import NotFound, UsageError
from tsuzuki.model.webhook_signatures import verify
from tsuzuki.services.events import Events
from tsuzuki.store.events import Event


@dataclass(frozen=True, kw_only=True)
class Received:
    """`is_new` is false if the same delivery had come before; the event is that of the first one then."""

    event: Event
    is_new: bool


class Webhooks:
    def __init__(self, *, webhooks: Iterable[Webhook], events: Events, clock: Clock) -> None:
        self._webhooks = {webhook.name: webhook for webhook in webhooks}
        self._events = events
        self._clock = clock

    def names(self) -> list[str]:
        """The webhooks that the configuration has."""
        return sorted(self._webhooks)

    def receive(self, name: str, *, headers: Mapping[str, str], body: bytes) -> Received:
        """Check a delivery and store its event. Header names in any case. Raises `NotFound` (`webhook_unknown`),
        `NotAuthenticated` (`signature_missing`, `signature_wrong`, `signature_stale`), `UsageError` for a body
        that is not JSON, `ConfigurationError` if the secret is not set."""
        webhook = self._webhooks.get(name)
        if webhook is None:
            raise NotFound(
                "there is no webhook by that name",
                hint="Webhooks stand in the section `webhooks` of tsuzuki.yaml.",
                code="webhook_unknown",
            )
        delivery = verify(
            webhook.kind,
            secrets=webhook.secrets(),
            headers=headers,
            body=body,
            now=self._clock.now(),
            secret_header=webhook.header,
        )
        parsed = _parsed(body)
        payload = {
            "webhook": name,
            "id": delivery.id,
            "event": delivery.event or _type_in(parsed),
            "body": parsed,
        }
        key = None if delivery.id is None else f"webhook:{name}:{delivery.id}"
        event, is_new = self._events.emit(webhook.event, payload, dedupe_key=key)
        return Received(event=event, is_new=is_new)


def _parsed(body: bytes) -> Any:
    """The JSON of a body; None for an empty one."""
    if not body.strip():
        return None
    try:
        return json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise UsageError(
            "the body of this webhook is not JSON",
            hint="Let the sender use the content type application/json.",
            code="webhook_body",
        ) from None


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _type_in(parsed: Any) -> str | None:
    """What a body itself calls its event, as in Standard Webhooks."""
    kind = parsed.get("type") if isinstance(parsed, dict) else None
    return kind if isinstance(kind, str) else None
