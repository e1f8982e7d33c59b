"""`/events`: emit and list events."""

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import Query, Response
from pydantic import Field, JsonValue

from tsuzuki.model.access import Right
from tsuzuki.model.idempotency_key import KEY_LENGTH_MAX
from tsuzuki.services.events import Event
from tsuzuki.web.answers import GivenMoment, Model, Moment
from tsuzuki.web.context import Context
from tsuzuki.web.paging import COUNT_MAX, Page, PageRequest, count_of
from tsuzuki.web.route import ApiRouter

router = ApiRouter("events")


class EventOut(Model):
    """An event. `processed_at` is when its runs were made."""

    id: int
    event_type: str
    payload: Any
    dedupe_key: str | None
    created_at: Moment
    processed_at: Moment | None


class EmittedEvent(EventOut):
    is_new: bool = Field(
        description="False if the event was emitted before; that event is returned."
    )
    listeners: list[str] = Field(description="Jobs started by the event.")


class NewEvent(Model):
    event_type: str = Field(min_length=1, max_length=200, examples=["order.created"])
    payload: JsonValue = Field(None, examples=[{"order": 7}])
    dedupe_key: str | None = Field(
        None, min_length=1, max_length=KEY_LENGTH_MAX, examples=["order-7"]
    )


class EventQuery(PageRequest):
    event_type: str | None = Field(None, max_length=200)
    since: GivenMoment | None = None


@router.get("/events", right=Right.EVENTS_READ)
def list_events(context: Context, query: Annotated[EventQuery, Query()]) -> Page[EventOut]:
    """List events, the newest first."""
    events = context.application.events

    def find(after: Any, limit: int) -> list[Event]:
        return events.find(
            event_type=query.event_type, since=query.since, before_id=after, limit=limit
        )

    return context.page(
        query,
        find=find,
        position=lambda event: event.id,
        item=lambda event: EventOut(**_values(context, event)),
        count=lambda: count_of(
            events.count(event_type=query.event_type, since=query.since, at_most=COUNT_MAX + 1)
        ),
    )


@router.post(
    "/events",
    right=Right.EVENTS_EMIT,
    refuses=[409],
    status_code=201,
    responses={200: {"model": EmittedEvent, "description": "The same event was emitted before."}},
)
def emit_event(context: Context, body: NewEvent, response: Response) -> EmittedEvent:
    """Emit an event; the jobs that wait for it will run. The same key, type and payload again emit nothing (200);
    the same key and type with another payload are refused."""
    key = body.dedupe_key
    if key is None and context.request_id is not None:
        key = f"api:{context.request_id}"
    events = context.application.events
    context.application.webhooks.check_emitter(body.event_type, context.principal)
    event, is_new = events.emit(
        body.event_type, body.payload, dedupe_key=key, actor=context.principal.actor
    )
    listeners = events.listeners(event.event_type)
    if not is_new and body.dedupe_key is not None:
        response.status_code = 200
    return EmittedEvent(**_values(context, event), is_new=is_new, listeners=listeners)


def _values(context: Context, event: Event) -> dict[str, Any]:
    return {**asdict(event), "payload": context.mask(event.payload)}
