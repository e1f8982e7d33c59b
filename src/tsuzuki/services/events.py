"""Events: emit and list them."""

from collections.abc import Callable, Collection, Iterable
from datetime import datetime
from typing import Any

from tsuzuki.model import jsontext
from tsuzuki.model.access import Principal, Right
from tsuzuki.model.errors import Conflict, NotFound, NotPermitted, UsageError
from tsuzuki.model.idempotency_key import check_key
from tsuzuki.store import audit, events, jobs
from tsuzuki.store.events import Event
from tsuzuki.store.sql.database import Connection, Database
from tsuzuki.store.wakeups import channels
from tsuzuki.store.wakeups.channels import WakeupChannel

__all__ = ["Event", "Events", "check_emitter"]

WEBHOOK_PREFIX = "webhook."
"""Of the type of a webhook's events if the configuration names no other."""


class Events:
    def __init__(
        self,
        *,
        database: Database,
        wake_others: Callable[[Collection[WakeupChannel]], None] = lambda _channels: None,
    ) -> None:
        self._database = database
        self._wake_others = wake_others

    def emit(
        self,
        event_type: str,
        payload: Any = None,
        *,
        dedupe_key: str | None = None,
        connection: Connection | None = None,
        actor: str | None = None,
    ) -> tuple[Event, bool]:
        """Store an event; the second value is False if it was emitted before: the same key, type and payload.
        Raises `Conflict` (`event_key_used`) if the key was used with another payload. With an `actor` a new event
        is audited under that name."""
        if not event_type or len(event_type) > 200:
            raise UsageError(
                "an event type must have 1 to 200 characters",
                hint="Name what happened, such as order.paid, and put details into the payload.",
            )
        check_key(dedupe_key)
        body = {} if payload is None else payload
        jsontext.check(body)
        if connection is not None:
            self._database.adopt(connection)
            return self._emit(connection, event_type, body, dedupe_key, actor)
        with self._database.write() as own:
            stored = self._emit(own, event_type, body, dedupe_key, actor)
        self._wake_others({WakeupChannel.LEADER})
        return stored

    def listeners(self, event_type: str) -> list[str]:
        """The names of the jobs that run when such an event is emitted."""
        with self._database.read() as connection:
            subscribed = jobs.find_by_event(connection, [event_type])
        return sorted(job.spec.name for job in subscribed if job.spec.enabled)

    def find(
        self,
        *,
        event_type: str | None = None,
        since: datetime | None = None,
        before_id: int | None = None,
        limit: int = 50,
    ) -> list[Event]:
        """Events, newest first."""
        with self._database.read() as connection:
            return events.find(
                connection, event_type=event_type, since=since, before_id=before_id, limit=limit
            )

    def get(self, event_id: int) -> Event:
        """Raises `NotFound`."""
        with self._database.read() as connection:
            event = events.get(connection, event_id)
        if event is None:
            raise NotFound(
                f"there is no event {event_id}",
                hint="List them with: tsuzuki event ls",
                code="event_unknown",
            )
        return event

    def count(
        self, *, event_type: str | None = None, since: datetime | None = None, at_most: int
    ) -> int:
        """How many events there are; counting ends at `at_most`."""
        with self._database.read() as connection:
            return events.count(connection, event_type=event_type, since=since, at_most=at_most)

    def _emit(
        self,
        connection: Connection,
        event_type: str,
        payload: Any,
        dedupe_key: str | None,
        actor: str | None,
    ) -> tuple[Event, bool]:
        stored = event, is_new = events.emit(
            connection, event_type=event_type, payload=payload, dedupe_key=dedupe_key
        )
        if not is_new and not jsontext.is_same(event.payload, payload):
            raise Conflict(
                f"the key {dedupe_key!r} was already used for event {event.id} with a different "
                "payload",
                hint="Use a new key for each event.",
                code="event_key_used",
            )
        if actor is not None and is_new:
            audit.record(
                connection,
                actor=actor,
                action="event.emit",
                object_type="event",
                object_id=str(event.id),
                after={"event_type": event_type},
            )
        channels.notify(connection, WakeupChannel.LEADER)
        return stored


def check_emitter(event_type: str, of_webhooks: Iterable[str], by: Principal) -> None:
    """Refuse a caller who would emit an event of a webhook's type: a job cannot tell it from a signed delivery. A
    principal that writes definitions may, as it may change what a job does. Raises `NotPermitted`."""
    is_reserved = event_type.startswith(WEBHOOK_PREFIX) or event_type in of_webhooks
    if is_reserved and not by.may(Right.JOBS_WRITE):
        raise NotPermitted(
            f"events of type {event_type!r} can only come from a webhook",
            hint="Send a signed request to the webhook, or choose another type.",
            code="event_type_reserved",
        )
