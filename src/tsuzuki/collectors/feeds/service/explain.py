"""Explanations: what was done for an item and what it cost, what happens next and when.

Everything here is read from what is stored: nothing is sent and nothing is paid.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tsuzuki.collectors.feeds.queries import item_lists, items, posts, steps
from tsuzuki.collectors.feeds.queries.item_lists import Sighting
from tsuzuki.collectors.feeds.queries.posts import Post
from tsuzuki.collectors.feeds.queries.steps import StepRecord
from tsuzuki.collectors.feeds.service.feed_definitions import FeedDefinitions, options_of
from tsuzuki.collectors.feeds.service.items import Items, ItemView, feed_in
from tsuzuki.collectors.feeds.service.next_step import NextSteps, next_step
from tsuzuki.collectors.feeds.tables import PreparationStep, StepState
from tsuzuki.model.sentence import Sentence
from tsuzuki.outward.outbox import OutboxState
from tsuzuki.wiring.collector import ServiceContext

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
class FeedItemExplanation:
    """`history` says where the item comes from, `next` what happens now; both are sentences."""

    view: ItemView
    history: list[Sentence]
    steps: list[ExplainedStep]
    next: list[Sentence]

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
        self._next_steps = NextSteps(context, definitions)

    def explain(self, name: str) -> FeedItemExplanation:
        """Everything about an item, by its id or its link."""
        view = self._items.get(name)
        item_id = view.item.id
        with self._database.read() as connection:
            sightings = item_lists.sightings(connection, item_id)
            done = steps.of_item(connection, item_id)
            sent = posts.of_item(connection, item_id)
            coming = list(self._next_steps.sentences(connection, view))
        told = [_explained_step(one) for one in done] + [_explained_post(one) for one in sent]
        return FeedItemExplanation(
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
                    **ItemView(item=item, feed=feed_in(feeds, item)).as_dict(),
                    "next_step": next_step(connection, item),
                }
                for position, item in enumerate(found, 1)
            ]


def _history(view: ItemView, sightings: list[Sighting]) -> Iterator[Sentence]:
    item = view.item
    if item.feed_id is None:
        yield Sentence(
            "Published %(published)s, stored by another program %(found)s.",
            published=item.published_at,
            found=item.created_at,
        )
        return
    yield Sentence(
        "Published %(published)s, found %(found)s in feed %(feed)s.",
        published=item.published_at,
        found=item.created_at,
        feed=view.feed.label,
    )
    others = [s for s in sightings if (s.job_name, s.name) != (view.feed.job, view.feed.name)]
    for other in others:
        yield Sentence(
            "Also in feed %(feed)s since %(since)s.",
            feed=f"{other.job_name}/{other.name}",
            since=other.first_seen_at,
        )


def _explained_step(record: StepRecord) -> ExplainedStep:
    ended = record.ended_at
    is_model = record.step is not PreparationStep.DOWNLOAD
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
    if record.state is StepState.DONE and record.step is PreparationStep.SCREENING:
        return str(record.result["verdict"]).replace("_", " ")
    if record.state is StepState.FAILED:
        return record.error_code or "failed"
    return record.state.value


def _detail(record: StepRecord) -> str | None:
    result = record.result or {}
    if record.step is PreparationStep.DOWNLOAD:
        return "; ".join([f"{result.get('characters', 0)} characters", *result.get("notes", ())])
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
