"""Explanations: what was done for an item and what it cost, what happens next and when; the post as it would be.

Everything here is read from what is stored: nothing is sent and nothing is paid.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tsuzuki.collectors.collector import ServiceContext
from tsuzuki.collectors.feeds.items import ItemReason, ItemStatus
from tsuzuki.collectors.feeds.queries import (
    accounts,
    item_lists,
    items,
    models,
    posts,
    steps,
)
from tsuzuki.collectors.feeds.queries.item_lists import Sighting
from tsuzuki.collectors.feeds.queries.posts import Post
from tsuzuki.collectors.feeds.queries.steps import StepRecord
from tsuzuki.collectors.feeds.service.feed_definitions import FeedDefinitions, FeedView, options_of
from tsuzuki.collectors.feeds.service.items import Items, ItemView
from tsuzuki.collectors.feeds.tables import Step, StepState, WaitingState
from tsuzuki.collectors.kit.outbox import OutboxState
from tsuzuki.store.sql.database import Connection

MICROS = 1_000_000


@dataclass(frozen=True, kw_only=True)
class ExplainedStep:
    """One line of an item's history."""

    at: datetime
    step: str
    outcome: str
    seconds: float | None = None
    tokens: int | None = None
    cost: float | None = None
    """In US dollars; None if the price is not known."""

    detail: str | None = None

    def as_dict(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """`history` says where the item comes from, `next` what happens now; both are sentences."""

    view: ItemView
    history: list[str]
    steps: list[ExplainedStep]
    next: list[str]

    def as_dict(self) -> dict[str, Any]:
        paid = [step.cost for step in self.steps if step.cost is not None]
        return {
            **self.view.as_dict(),
            "history": self.history,
            "steps": [step.as_dict() for step in self.steps],
            "tokens": sum(step.tokens or 0 for step in self.steps),
            "cost": sum(paid) if paid else None,
            "next": self.next,
        }


class Explanations:
    def __init__(
        self, context: ServiceContext, definitions: FeedDefinitions, items_: Items
    ) -> None:
        self._database = context.database
        self._definitions = definitions
        self._items = items_

    def explain(self, name: str) -> Explanation:
        """Everything about an item, by its id or its link."""
        view = self._items.get(name)
        item_id = view.item.id
        with self._database.read() as connection:
            sightings = item_lists.sightings(connection, item_id)
            done = steps.of_item(connection, item_id)
            sent = posts.of_item(connection, item_id)
            coming = list(self._next(connection, view))
        told = [_explained_step(one) for one in done] + [_explained_post(one) for one in sent]
        return Explanation(
            view=view,
            history=list(_history(view, sightings)),
            steps=sorted(told, key=lambda one: one.at),
            next=coming,
        )

    def plan(self, job_name: str, *, limit: int | None) -> list[dict[str, Any]]:
        """The items of a job that are ready, in the order in which a run would draw them."""
        view = self._definitions.require_job(job_name)
        options = options_of(view)
        feeds = {
            one.stored.id: one
            for one in self._definitions.find(job_name)
            if one.stored is not None and one.options is not None
        }
        most = options.items_per_run if limit is None else limit
        with self._database.read() as connection:
            now = self._database.now(connection)
            found = items.upcoming(connection, feed_ids=list(feeds), now=now, limit=most)
            return [
                {
                    "position": position,
                    **ItemView(item=item, feed=feeds[item.feed_id]).as_dict(),
                    "next_step": _next_step(connection, item.id, item.state.status),
                }
                for position, item in enumerate(found, 1)
            ]

    def _next(self, connection: Connection, view: ItemView) -> Iterator[str]:
        item, feed = view.item, view.feed
        match item.waiting:
            case None:
                yield from _after_the_end(view)
                return
            case WaitingState.APPROVAL:
                yield f"It waits for you: tsuzuki feeds approve {item.id}"
                return
            case WaitingState.TAKEN:
                yield "A run works on it now."
                return
            case WaitingState.BACKOFF:
                yield f"It is drawn by the first run after {_moment(item.not_before)}."
            case WaitingState.READY:
                step = _next_step(connection, item.id, item.state.status)
                yield f"It waits to be drawn; the next step is: {step}."
        if feed.options is None:
            yield f"But no job has its feed {feed.name} any more."
        else:
            yield from self._hindrances(connection, feed)

    def _hindrances(self, connection: Connection, feed: FeedView) -> Iterator[str]:
        """What keeps a feed's items from being drawn, and when that ends."""
        assert feed.options is not None  # noqa: S101 -- the caller looks
        now = self._database.now(connection)
        park = models.parked(connection, now=now).get(feed.options.model)
        if park is not None:
            yield f"The model {feed.options.model} is not asked until {_moment(park.probe_at)}: {park.why}."
        until = accounts.get(connection, feed.options.account).limited_until
        if until is not None and until > now:
            yield f"Nothing is posted to the account {feed.options.account} until {_moment(until)}."
        job = self._definitions.require_job(feed.job)
        if not job.spec.enabled:
            yield f"The job {feed.job} is switched off: tsuzuki job enable {feed.job}"
        elif job.next_at is not None:
            yield f"The next run of the job {feed.job} is at {_moment(job.next_at)}."
        else:
            yield f"The job {feed.job} runs {job.schedule_words}: tsuzuki feeds process {feed.job}"


def _history(view: ItemView, sightings: list[Sighting]) -> Iterator[str]:
    item = view.item
    yield f"Published {_moment(item.published_at)}, found {_moment(item.created_at)} by the feed {view.feed.label}."
    others = [s for s in sightings if (s.job_name, s.name) != (view.feed.job, view.feed.name)]
    for other in others:
        yield f"Also listed by {other.job_name}/{other.name} since {_moment(other.first_seen_at)}."


def _after_the_end(view: ItemView) -> Iterator[str]:
    item = view.item
    again = f"To have it worked on again: tsuzuki feeds requeue {item.id}"
    match item.state.reason:
        case ItemReason.NONE:
            yield "It was posted. Nothing more happens."
        case ItemReason.RETRY_LIMIT_EXCEEDED:
            yield f"It was given up after {item.state.retry_count} tries. {again}"
        case _:
            yield f"It was never worked on: {item.cause or 'no cause is stored'}. {again}"


def _next_step(connection: Connection, item_id: int, status: ItemStatus) -> str:
    if steps.last_done(connection, item_id, Step.SUMMARY) is not None:
        return "post"
    return "summary" if status is ItemStatus.PENDING else "download and screening"


def _explained_step(record: StepRecord) -> ExplainedStep:
    ended = record.ended_at
    is_model = record.step is not Step.DOWNLOAD
    return ExplainedStep(
        at=record.started_at,
        step=record.step.value,
        outcome=_outcome(record),
        seconds=None if ended is None else (ended - record.started_at).total_seconds(),
        tokens=record.input_tokens + record.output_tokens if is_model else None,
        cost=None if record.cost_micros is None else record.cost_micros / MICROS,
        detail=record.error or _detail(record),
    )


def _outcome(record: StepRecord) -> str:
    if record.state is StepState.DONE and record.step is Step.SCREENING:
        return str(record.result["verdict"]).replace("_", " ")
    if record.state is StepState.FAILED:
        return record.error_code or "failed"
    return record.state.value


def _detail(record: StepRecord) -> str | None:
    result = record.result or {}
    if record.step is Step.DOWNLOAD:
        return f"{result.get('characters', 0)} characters"
    return result.get("why") or result.get("text")


def _explained_post(post: Post) -> ExplainedStep:
    is_open = post.state in (OutboxState.INTENDED, OutboxState.SENDING)
    return ExplainedStep(
        at=post.created_at,
        step=post.kind.value,
        outcome=post.state.value,
        seconds=None if is_open else (post.changed_at - post.created_at).total_seconds(),
        detail=post.error or post.remote_url,
    )


def _moment(moment: datetime | None) -> str:
    return "-" if moment is None else f"{moment:%Y-%m-%d %H:%M:%SZ}"
