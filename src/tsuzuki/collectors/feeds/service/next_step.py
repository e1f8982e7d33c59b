"""What happens next with an item, when, and what keeps it waiting. Everything is read; nothing is sent or paid."""

from collections.abc import Iterator
from datetime import datetime

from tsuzuki.collectors.feeds.items.item import ItemReason, ItemStatus
from tsuzuki.collectors.feeds.model.budget import Budgets
from tsuzuki.collectors.feeds.options import FeedOptions, FeedsSection
from tsuzuki.collectors.feeds.posting.caps import posts_left
from tsuzuki.collectors.feeds.posting.output_guard import OutputRefused, guarded_summary
from tsuzuki.collectors.feeds.queries import accounts, item_lists, models, posts, steps
from tsuzuki.collectors.feeds.queries.items import StoredItem
from tsuzuki.collectors.feeds.queries.posts import Post
from tsuzuki.collectors.feeds.service.feed_definitions import FeedDefinitions, FeedView
from tsuzuki.collectors.feeds.service.feed_setup import missing_settings
from tsuzuki.collectors.feeds.service.items import ItemView
from tsuzuki.collectors.feeds.tables import PostKind, PreparationStep, WaitingState
from tsuzuki.model.errors import ConfigurationError
from tsuzuki.model.sentence import CommandLine, Sentence
from tsuzuki.outward.outbox import OutboxState
from tsuzuki.store.sql.database import Connection
from tsuzuki.wiring.collector import ServiceContext

POST = "post"
STEP_WORDS = {
    POST: Sentence("post"),
    "summary": Sentence("summary"),
    "download and screening": Sentence("download and screening"),
}
KIND_WORDS = {
    PostKind.POST: Sentence("post"),
    PostKind.EDIT: Sentence("edit"),
    PostKind.REPLY: Sentence("reply"),
}


class NextSteps:
    def __init__(self, context: ServiceContext, definitions: FeedDefinitions) -> None:
        self._context = context
        self._database = context.database
        self._definitions = definitions

    def sentences(self, connection: Connection, view: ItemView) -> Iterator[Sentence]:
        """What happens now, then what keeps the item from it and until when."""
        item, options = view.item, view.feed.options
        match item.waiting:
            case None:
                yield from _after_the_end(connection, view)
                return
            case WaitingState.APPROVAL:
                yield from _awaiting_a_person(connection, item)
                return
            case WaitingState.TAKEN if item_lists.is_worked_on(connection, item.id):
                yield Sentence("A run is processing this item.")
                return
            case WaitingState.TAKEN:
                yield Sentence(
                    "The run processing this item ended early; the next run will resume it."
                )
            case WaitingState.BACKOFF if view.next_look_at is not None:
                yield Sentence(
                    "The outcome of the post is unknown: no response came, and it may have arrived. The first "
                    "run after %(when)s will look for it, and will send it again only if it is missing twice. If "
                    "you have checked, run one of:",
                    when=view.next_look_at,
                )
                yield from _decisions(item)
            case WaitingState.BACKOFF:
                yield Sentence(
                    "The first run after %(when)s will process this item.", when=item.not_before
                )
            case WaitingState.READY:
                yield Sentence(
                    "Waiting to be processed; next step: %(step)s.",
                    step=STEP_WORDS[next_step(connection, item)],
                )
        if item.feed_id is None:
            yield Sentence("No feed has listed this item yet; the next run will assign it to one.")
            return
        if options is None:
            yield Sentence(
                "However, no job processes its feed %(feed)s any more.", feed=view.feed.name
            )
            return
        yield from _refused(connection, item, options)
        yield from self._hindrances(connection, item, view.feed, options)

    def _hindrances(
        self, connection: Connection, item: StoredItem, feed: FeedView, options: FeedOptions
    ) -> Iterator[Sentence]:
        """What keeps a feed's items from being drawn, and when that ends."""
        now = self._database.now(connection)
        park = models.parked(connection, now=now).get(options.model)
        if park is not None:
            yield Sentence(
                "The model %(model)s will not be called until %(until)s: %(why)s.",
                model=options.model,
                until=park.probe_at,
                why=park.why,
            )
        until = accounts.get(connection, options.account).limited_until
        if until is not None and until > now:
            yield Sentence(
                "Nothing will be posted to the account %(account)s until %(until)s.",
                account=options.account,
                until=until,
            )
        if feed.stored is not None:
            yield from self._used_up(connection, item, feed.stored.id, options, now)
        job = self._definitions.require_job(feed.job)
        if not job.spec.enabled:
            yield Sentence(
                "The job %(job)s is disabled. To enable it: %(command)s",
                job=feed.job,
                command=CommandLine(f"tsuzuki job enable {feed.job}"),
            )
        elif job.next_at is not None:
            yield Sentence(
                "The next run of job %(job)s is at %(when)s.", job=feed.job, when=job.next_at
            )
        else:
            yield Sentence(
                "Schedule of job %(job)s: %(schedule)s. To start it now: %(command)s",
                job=feed.job,
                schedule=job.schedule_words,
                command=CommandLine(f"tsuzuki feeds process {feed.job}"),
            )

    def _used_up(
        self,
        connection: Connection,
        item: StoredItem,
        feed_id: int,
        options: FeedOptions,
        now: datetime,
    ) -> Iterator[Sentence]:
        """Settings that are missing, budgets without room, and caps that are reached."""
        try:
            section = self._context.section(FeedsSection)
        except ConfigurationError as problem:
            yield Sentence("A run would fail: %(problem)s.", problem=problem.message)
        else:
            yield from (
                Sentence("%(text)s", text=text) for text in missing_settings(section, options)
            )
            refusals = Budgets(section).refusals(connection, feeds={feed_id: options}, now=now)
            if feed_id in refusals and next_step(connection, item) != POST:
                sentence, open_at = refusals[feed_id].sentence, refusals[feed_id].open_at
                text = f"{sentence[0].upper()}{sentence[1:]}"
                yield (
                    Sentence(
                        "%(text)s; capacity is available again at %(when)s.",
                        text=text,
                        when=open_at,
                    )
                    if open_at
                    else Sentence("%(text)s.", text=text)
                )
        if options.hold and not item.is_approved:
            return
        left = posts_left(connection, feed_id, options.caps, now=now)
        if left.count == 0:
            yield (
                Sentence(
                    "The feed has reached its post caps; the next post is possible at %(when)s.",
                    when=left.open_at,
                )
                if left.open_at
                else Sentence("The feed cannot post: one of its caps is 0.")
            )


def next_step(connection: Connection, item: StoredItem) -> str:
    """In words: what a run does first with it."""
    if steps.last_done(connection, item.id, PreparationStep.SUMMARY) is not None:
        return POST
    return "summary" if item.state.status is ItemStatus.PENDING else "download and screening"


def _after_the_end(connection: Connection, view: ItemView) -> Iterator[Sentence]:
    item = view.item
    requeue = CommandLine(f"tsuzuki feeds requeue {item.id}")
    match item.state.reason:
        case ItemReason.NONE:
            yield from _after_its_post(connection, item)
        case ItemReason.RETRY_LIMIT_EXCEEDED if view.next_look_at is not None:
            yield Sentence(
                "Dropped after %(count)s attempts, but the last post may have arrived. The first run after "
                "%(when)s will look for it. If you have checked, run one of:",
                count=item.state.retry_count,
                when=view.next_look_at,
            )
            yield from _decisions(item)
        case ItemReason.RETRY_LIMIT_EXCEEDED:
            yield Sentence(
                "Dropped after %(count)s attempts. To requeue it: %(command)s",
                count=item.state.retry_count,
                command=requeue,
            )
        case _:
            yield Sentence(
                "Excluded: %(cause)s. To process it anyway: %(command)s",
                cause=item.cause or Sentence("no reason recorded"),
                command=requeue,
            )


def _after_its_post(connection: Connection, item: StoredItem) -> Iterator[Sentence]:
    latest = posts.latest_of_item(connection, item.id)
    if latest is not None and latest.state is OutboxState.UNSETTLED:
        yield _unsettled_change(latest)
        yield from _decisions(item)
    elif latest is not None and latest.state is OutboxState.REFUSED:
        yield Sentence(
            "Posted. The %(kind)s was rejected: %(error)s. To send it again: %(command)s",
            kind=KIND_WORDS[latest.kind],
            error=latest.error,
            command=CommandLine(f"tsuzuki feeds approve {item.id} --send-again"),
        )
    elif latest is not None and latest.state is OutboxState.INTENDED:
        yield Sentence("Posted. The next run will send the %(kind)s.", kind=KIND_WORDS[latest.kind])
    else:
        yield Sentence("Posted. Nothing left to do.")


def _unsettled_change(post: Post) -> Sentence:
    kind = KIND_WORDS[post.kind]
    if post.next_look_at is None:
        return Sentence(
            "Posted. Whether the %(kind)s arrived is unknown, and the receiver cannot be asked. Check it "
            "yourself, then run one of:",
            kind=kind,
        )
    return Sentence(
        "Posted. Whether the %(kind)s arrived is unknown. The first run after %(when)s will look for it. If you "
        "have checked, run one of:",
        kind=kind,
        when=post.next_look_at,
    )


def _decisions(item: StoredItem) -> Iterator[Sentence]:
    for answer in ("--was-sent", "--send-again"):
        command = CommandLine(f"tsuzuki feeds approve {item.id} {answer}")
        yield Sentence("%(command)s", command=command)


def _awaiting_a_person(connection: Connection, item: StoredItem) -> Iterator[Sentence]:
    post = posts.post_of_item(connection, item.id)
    if post is not None and post.state is OutboxState.UNSETTLED:
        yield Sentence(
            "Whether the post arrived is unknown, and the receiver cannot be asked. Check it yourself, then run one of:"
        )
        yield from _decisions(item)
    else:
        preview = CommandLine(f"tsuzuki feeds preview {item.id}")
        approve = CommandLine(f"tsuzuki feeds approve {item.id}")
        yield Sentence("Awaiting your approval. To read the post: %(command)s", command=preview)
        yield Sentence("To approve it: %(command)s", command=approve)


def _refused(connection: Connection, item: StoredItem, options: FeedOptions) -> Iterator[Sentence]:
    """Why its post cannot go out, if that is known before it is tried again."""
    post = posts.post_of_item(connection, item.id)
    if post is not None and post.state is OutboxState.REFUSED:
        yield Sentence(
            "The post was rejected: %(error)s. To send it again: %(command)s",
            error=post.error,
            command=CommandLine(f"tsuzuki feeds approve {item.id} --send-again"),
        )
    summary = steps.last_done(connection, item.id, PreparationStep.SUMMARY)
    if summary is not None:
        try:
            guarded_summary(str(summary.result["text"]), language=options.language)
        except OutputRefused as refused:
            yield Sentence("The summary cannot be posted: %(why)s.", why=refused.why)
