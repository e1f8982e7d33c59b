"""What happens next with an item, when, and what keeps it waiting. Everything is read; nothing is sent or paid."""

from collections.abc import Iterator
from datetime import datetime

from tsuzuki.collectors.collector import ServiceContext
from tsuzuki.collectors.feeds.budget import Budgets
from tsuzuki.collectors.feeds.items import ItemReason, ItemStatus
from tsuzuki.collectors.feeds.options import FeedOptions, FeedsSection
from tsuzuki.collectors.feeds.output_guard import OutputRefused, guarded_summary
from tsuzuki.collectors.feeds.post_caps import posts_left
from tsuzuki.collectors.feeds.queries import accounts, item_lists, models, posts, steps
from tsuzuki.collectors.feeds.queries.items import Item
from tsuzuki.collectors.feeds.service.feed_definitions import FeedDefinitions, FeedView
from tsuzuki.collectors.feeds.service.feed_setup import missing_settings
from tsuzuki.collectors.feeds.service.items import ItemView
from tsuzuki.collectors.feeds.tables import Step, WaitingState
from tsuzuki.collectors.kit.outbox import OutboxState
from tsuzuki.model.errors import ConfigurationError
from tsuzuki.store.sql.database import Connection

POST = "post"


class NextSteps:
    def __init__(self, context: ServiceContext, definitions: FeedDefinitions) -> None:
        self._context = context
        self._database = context.database
        self._definitions = definitions

    def sentences(self, connection: Connection, view: ItemView) -> Iterator[str]:
        """What happens now, then what keeps the item from it and until when."""
        item, options = view.item, view.feed.options
        match item.waiting:
            case None:
                yield from _after_the_end(connection, item)
                return
            case WaitingState.APPROVAL:
                yield from _awaiting_a_person(connection, item)
                return
            case WaitingState.TAKEN if item_lists.is_worked_on(connection, item.id):
                yield "A run works on it now."
                return
            case WaitingState.TAKEN:
                yield "The run that worked on it has ended before it was done; the next one goes on with it."
            case WaitingState.BACKOFF:
                yield f"It is drawn by the first run after {moment_text(item.not_before)}."
            case WaitingState.READY:
                step = next_step(connection, item)
                yield f"It waits to be drawn; the next step is: {step}."
        if options is None:
            yield f"But no job has its feed {view.feed.name} any more."
            return
        yield from _refused(connection, item, options)
        yield from self._hindrances(connection, item, view.feed, options)

    def _hindrances(
        self, connection: Connection, item: Item, feed: FeedView, options: FeedOptions
    ) -> Iterator[str]:
        """What keeps a feed's items from being drawn, and when that ends."""
        now = self._database.now(connection)
        park = models.parked(connection, now=now).get(options.model)
        if park is not None:
            yield f"The model {options.model} is not asked until {moment_text(park.probe_at)}: {park.why}."
        until = accounts.get(connection, options.account).limited_until
        if until is not None and until > now:
            yield f"Nothing is posted to the account {options.account} until {moment_text(until)}."
        if feed.stored is not None:
            yield from self._used_up(connection, item, feed.stored.id, options, now)
        job = self._definitions.require_job(feed.job)
        if not job.spec.enabled:
            yield f"The job {feed.job} is switched off: tsuzuki job enable {feed.job}"
        elif job.next_at is not None:
            yield f"The next run of the job {feed.job} is at {moment_text(job.next_at)}."
        else:
            yield f"The job {feed.job} runs {job.schedule_words}: tsuzuki feeds process {feed.job}"

    def _used_up(
        self, connection: Connection, item: Item, feed_id: int, options: FeedOptions, now: datetime
    ) -> Iterator[str]:
        """Settings that are missing, budgets without room, and caps that are reached."""
        try:
            section = self._context.section(FeedsSection)
        except ConfigurationError as problem:
            yield f"A run would fail: {problem.message}."
        else:
            yield from missing_settings(section, options)
            refusals = Budgets(section).refusals(connection, feeds={feed_id: options}, now=now)
            if feed_id in refusals and next_step(connection, item) != POST:
                sentence, open_at = refusals[feed_id].sentence, refusals[feed_id].open_at
                then = f"; there is room at {moment_text(open_at)}" if open_at else ""
                yield f"{sentence[0].upper()}{sentence[1:]}{then}."
        if options.hold and not item.is_approved:
            return
        left = posts_left(connection, feed_id, options.caps, now=now)
        if left.count == 0:
            then = f"the next one may go out at {moment_text(left.open_at)}" if left.open_at else ""
            yield f"The feed has made as many posts as its caps allow; {then or 'a cap is 0'}."


def next_step(connection: Connection, item: Item) -> str:
    """In words: what a run does first with it."""
    if steps.last_done(connection, item.id, Step.SUMMARY) is not None:
        return POST
    return "summary" if item.state.status is ItemStatus.PENDING else "download and screening"


def moment_text(moment: datetime | None) -> str:
    return "-" if moment is None else f"{moment:%Y-%m-%d %H:%M:%SZ}"


def _after_the_end(connection: Connection, item: Item) -> Iterator[str]:
    requeue = f"tsuzuki feeds requeue {item.id}"
    match item.state.reason:
        case ItemReason.NONE:
            yield from _after_its_post(connection, item)
        case ItemReason.RETRY_LIMIT_EXCEEDED:
            yield f"It was given up after {item.state.retry_count} tries. To have it worked on again: {requeue}"
        case _:
            yield f"It is left out: {item.cause or 'no cause is stored'}. To have it worked on: {requeue}"


def _after_its_post(connection: Connection, item: Item) -> Iterator[str]:
    latest = posts.latest_of_item(connection, item.id)
    if latest is not None and latest.state is OutboxState.UNSETTLED:
        yield (
            f"It was posted. It is not known whether its {latest.kind.value} arrived. Each run looks, if the receiver "
            "can be asked; if not, look yourself, then say either:"
        )
        yield from _decisions(item)
    elif latest is not None and latest.state is OutboxState.REFUSED:
        yield (
            f"It was posted. Its {latest.kind.value} was refused: {latest.error}. To send it again: "
            f"tsuzuki feeds approve {item.id} --send-again"
        )
    elif latest is not None and latest.state is OutboxState.INTENDED:
        yield f"It was posted. The next run sends its {latest.kind.value}."
    else:
        yield "It was posted. Nothing more happens."


def _decisions(item: Item) -> Iterator[str]:
    yield f"tsuzuki feeds approve {item.id} --was-sent"
    yield f"tsuzuki feeds approve {item.id} --send-again"


def _awaiting_a_person(connection: Connection, item: Item) -> Iterator[str]:
    post = posts.post_of_item(connection, item.id)
    if post is not None and post.state is OutboxState.UNSETTLED:
        yield "It is not known whether its post arrived, and the receiver cannot be asked. Look, then say either:"
        yield from _decisions(item)
    else:
        yield f"It waits for you. To read it: tsuzuki feeds preview {item.id}"
        yield f"To let it go out: tsuzuki feeds approve {item.id}"


def _refused(connection: Connection, item: Item, options: FeedOptions) -> Iterator[str]:
    """Why its post cannot go out, if that is known before it is tried again."""
    post = posts.post_of_item(connection, item.id)
    if post is not None and post.state is OutboxState.REFUSED:
        yield f"Its post was refused: {post.error}. To send it again: tsuzuki feeds approve {item.id} --send-again"
    summary = steps.last_done(connection, item.id, Step.SUMMARY)
    if summary is not None:
        try:
            guarded_summary(str(summary.result["text"]), language=options.language)
        except OutputRefused as refused:
            yield f"Its summary cannot be posted: {refused.why}."
