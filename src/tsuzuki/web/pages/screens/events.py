"""Events: the events received, the runs each one started, and emitting an event."""

import secrets
from dataclasses import asdict
from typing import Annotated, Any, ClassVar

from fastapi import Form, Path, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from tsuzuki.model.access import Right
from tsuzuki.model.errors import UsageError
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.services.events import Event
from tsuzuki.web.answers import Model
from tsuzuki.web.api.events import EventOut, EventQuery
from tsuzuki.web.api.run_models import RunOut, run_out
from tsuzuki.web.pages.context import Page, PageContext
from tsuzuki.web.pages.language import message
from tsuzuki.web.pages.route import Screen
from tsuzuki.web.pages.words import Word
from tsuzuki.web.paging import COUNT_MAX, Count, count_of
from tsuzuki.web.problems import RequestError
from tsuzuki.web.security.bodies import INTEGER_MAX, parse_json

screen = Screen()

RUNS_SHOWN = 20
PAYLOAD_LENGTH_MAX = 100_000
PROCESSED = Word(message("Processed"), "succeeded", "good")
UNPROCESSED = Word(message("Waiting"), "pending", "wait")

EventId = Annotated[int, Path(ge=1, le=INTEGER_MAX)]


class EventRow(EventOut):
    """`runs` is how many runs it started; null for those who may not see runs."""

    runs: Count | None


class EventsView(Model):
    processed: ClassVar = PROCESSED
    unprocessed: ClassVar = UNPROCESSED

    events: list[EventRow]
    next_cursor: str | None
    filters: dict[str, Any]
    count: Count | None


@screen.page("/events", right=Right.EVENTS_READ, template="screens/events.html")
def events_page(context: Page, query: Annotated[EventQuery, Query()]) -> EventsView:
    events, event_type = context.application.events, query.event_type
    page = context.page(
        query.model_copy(update={"count": True}),
        find=lambda after, limit: events.find(event_type=event_type, before_id=after, limit=limit),
        position=lambda event: event.id,
        item=lambda event: _row(context, event),
        count=lambda: count_of(events.count(event_type=event_type, at_most=COUNT_MAX + 1)),
    )
    return EventsView(
        events=page.items, next_cursor=page.next_cursor, filters=page.filters, count=page.count
    )


def _row(context: PageContext, event: Event) -> EventRow:
    counted = None
    if context.principal.may(Right.RUNS_READ):
        wanted = RunFilter(event_id=event.id)
        counted = count_of(context.application.runs.count(wanted, at_most=COUNT_MAX + 1))
    return EventRow(**vars(_event_out(context, event)), runs=counted)


def _event_out(context: PageContext, event: Event) -> EventOut:
    return EventOut(**{**asdict(event), "payload": context.mask(event.payload)})


class EventView(Model):
    """`listeners` are the jobs that such an event runs now; `runs` the newest of those that this one made."""

    processed: ClassVar = PROCESSED
    unprocessed: ClassVar = UNPROCESSED

    event: EventOut
    listeners: list[str]
    runs: list[RunOut]


@screen.page("/events/{event_id:int}", right=Right.EVENTS_READ, template="screens/event.html")
def event_page(context: Page, event_id: EventId) -> EventView:
    application = context.application
    event = application.events.get(event_id)
    may_see_runs = context.principal.may(Right.RUNS_READ)
    wanted = RunFilter(event_id=event_id, limit=RUNS_SHOWN)
    found = application.runs.find(wanted) if may_see_runs else []
    return EventView(
        event=_event_out(context, event),
        listeners=application.events.listeners(event.event_type),
        runs=[run_out(context, run) for run in found],
    )


class EmitView(Model):
    """`form_key` is new for each form: sent twice it emits once."""

    event_type: str = ""
    payload: str = ""
    dedupe_key: str = ""
    form_key: str = Field(default_factory=lambda: secrets.token_urlsafe(12))


class EmitQuery(BaseModel):
    event_type: str = Field("", max_length=1000)


class EmitForm(EmitQuery):
    model_config = ConfigDict(extra="forbid")

    payload: str = Field("", max_length=PAYLOAD_LENGTH_MAX)
    dedupe_key: str = Field("", max_length=500)
    form_key: str = Field(min_length=1, max_length=100)


@screen.page("/events/emit", right=Right.EVENTS_EMIT, template="screens/event_emit.html")
def emit_page(context: Page, form: Annotated[EmitQuery, Query()]) -> EmitView:  # noqa: ARG001 - as every page takes
    return EmitView.model_validate(form.model_dump())


@screen.form("/events/emit", right=Right.EVENTS_EMIT, page=emit_page)
def emit(context: Page, form: Annotated[EmitForm, Form()]) -> Response:
    event_type = form.event_type.strip()
    context.application.webhooks.check_emitter(event_type, context.principal)
    event, is_new = context.application.events.emit(
        event_type,
        _payload(form.payload),
        dedupe_key=form.dedupe_key or f"web:{form.form_key}",
        actor=context.principal.actor,
    )
    text = (
        message("Event %(id)s emitted.")
        if is_new
        else message("Event %(id)s was already emitted with this key.")
    )
    return context.redirect(f"/events/{event.id}", text, id=event.id)


def _payload(text: str) -> Any:
    if not text.strip():
        return None
    try:
        return parse_json(text.encode("utf-8"))
    except RequestError as problem:
        told = problem.message.removeprefix("the body is not valid JSON: ")
        raise UsageError(
            f"the payload is not JSON: {told}",
            hint='Write it as in {"order": 7}, or leave it empty.',
            code="payload",
        ) from problem
