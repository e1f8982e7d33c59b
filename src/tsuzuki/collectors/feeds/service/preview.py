"""The post of an item as it would be now, with what the model was told and what it said."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tsuzuki.collectors.feeds.channels.protocol import PostBody, PostLimits
from tsuzuki.collectors.feeds.model.prompts import (
    message_of,
    screening_question,
    summary_question,
)
from tsuzuki.collectors.feeds.posting.output_guard import OutputRefused
from tsuzuki.collectors.feeds.queries import accounts, pages, steps
from tsuzuki.collectors.feeds.service.items import Items, ItemView
from tsuzuki.collectors.feeds.tables import PreparationStep
from tsuzuki.model.errors import Conflict
from tsuzuki.wiring.collector import ServiceContext


@dataclass(frozen=True, kw_only=True)
class PostPreview:
    """`body` is None while there is no summary, or if it cannot be posted: then `problem` says why. `length` is
    counted as the receiver counts."""

    view: ItemView
    prompts: dict[str, str]
    message: str | None
    verdict: str | None
    why: str | None
    body: PostBody | None
    length: int | None
    limit: int | None
    problem: str | None = None

    def as_dict(self) -> dict[str, Any]:
        return {
            **self.view.as_dict(),
            "prompts": self.prompts,
            "message": self.message,
            "verdict": self.verdict,
            "why": self.why,
            "post": self.body.as_dict() if self.body else None,
            "length": self.length,
            "limit": self.limit,
            "problem": self.problem,
        }

    def lines(self, *, prompts: bool) -> Iterator[str]:
        """For a reader."""
        if prompts:
            for step, words in self.prompts.items():
                yield f"--- {step}: the prompt for the model"
                yield words
            yield "--- the article as the model receives it"
            yield (
                self.message
                or "(page not stored: it will be downloaded when the item is processed)"
            )
        yield f"--- verdict: {self.verdict or 'not screened yet'}"
        if self.why:
            yield self.why
        if self.body is None:
            yield f"--- no post: {self.problem or 'there is no summary yet'}"
            return
        of = f" of {self.limit}" if self.limit else ""
        yield f"--- post: {self.length}{of} characters, {self.body.visibility}, {self.body.language}"
        yield self.body.text


class Previews:
    def __init__(self, context: ServiceContext, items: Items) -> None:
        self._database = context.database
        self._items = items

    def preview(self, name: str) -> PostPreview:
        """Raises `Conflict` if no job has the item's feed any more."""
        from tsuzuki.collectors.feeds.posting.text import compose_post, post_length  # noqa: PLC0415

        view = self._items.get(name)
        item, feed = view.item, view.feed.options
        if feed is None:
            raise Conflict(
                f"no job has the feed {view.feed.name!r} any more, so there is no template",
                code="feed_removed",
            )
        with self._database.read() as connection:
            page = pages.get(connection, item.id)
            screened = steps.last_done(connection, item.id, PreparationStep.SCREENING)
            summarised = steps.last_done(connection, item.id, PreparationStep.SUMMARY)
            stored = accounts.get(connection, feed.account)
        limits = PostLimits.from_dict(stored.limits or {})
        article = {"title": item.title, "url": item.url, "text": page.text if page else ""}
        questions = [screening_question(feed, **article), summary_question(feed, **article)]
        body, problem = None, None
        if summarised is not None:
            try:
                body = compose_post(
                    feed,
                    title=item.title,
                    url=item.url,
                    canonical_url=item.canonical_url,
                    summary=str(summarised.result["text"]),
                    limits=limits,
                    author=item.author,
                    feed_title=view.feed.title,
                )
            except OutputRefused as refused:
                problem = refused.why
        length = None
        if body is not None:
            length = post_length(
                body.text, url=body.url, content_warning=body.content_warning, limits=limits
            )
        return PostPreview(
            view=view,
            prompts={question.step.value: question.instructions for question in questions},
            message=message_of(questions[0]) if page else None,
            verdict=screened.result["verdict"] if screened else None,
            why=screened.result["why"] if screened else None,
            body=body,
            length=length,
            limit=limits.characters_max,
            problem=problem,
        )
