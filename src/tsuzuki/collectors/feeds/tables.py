"""What feeds keep. `items` has the columns, codes and indexes of the design it comes from; everything else
stands beside it, in tables of ours.

    items                 every article by its link, with its state and reason; never deleted
    waiting_items         one row for each item that is not processed: whether it may be drawn, and by whom it is taken
    item_details          what the feed said about an item, and why one was never worked on
    item_pages            the text of an item's page, until the item is processed
    item_steps            every download, screening and summary, with tokens and cost
    item_fingerprints     by which an item is known again: its link without tracking, its guid
    feeds                 where each feed is, what its last fetch gave, and how it fares
    feed_items            which feeds listed an item; the first of them owns it (`item_details.feed_id`)
    feed_unusable_entries entries that cannot be items, and why
    feed_posts            the outbox: one row for each post, edit or reply, written before anything is sent
    feed_budget_use       requests, tokens and cost by scope and time window
    feed_models           until when a model is not asked
    feed_accounts         the limits of an account's server, and until when nothing is posted there
"""

from enum import StrEnum
from pathlib import Path
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Connection,
    Dialect,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    false,
)
from sqlalchemy.types import TypeEngine, UserDefinedType

from tsuzuki.outward.outbox import OutboxState
from tsuzuki.store.schema.migrate import Component
from tsuzuki.store.schema.tables import NAMES, one_of, partial_index
from tsuzuki.store.schema.takeover import FormerTables
from tsuzuki.store.sql.dialect import is_sqlite
from tsuzuki.store.sql.types import BigId, JsonText, KeyText, PlainText, UtcTime

metadata = MetaData(naming_convention=NAMES)


class _TimestampText(UserDefinedType[str]):
    """The name of the design for the type of the column; what is stored is text as everywhere."""

    cache_ok = True

    def get_col_spec(self, **_options: Any) -> str:
        return "TIMESTAMP"


class Timestamp(UtcTime):
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if is_sqlite(dialect):
            return dialect.type_descriptor(_TimestampText())
        return super().load_dialect_impl(dialect)


class WaitingState(StrEnum):
    """Whether an item that is not processed may be drawn."""

    READY = "ready"
    """It may be drawn, if its feed, model and account may be used."""

    TAKEN = "taken"
    """A run works on it."""

    BACKOFF = "backoff"
    """Deferred; the first run after `not_before` makes it ready."""

    APPROVAL = "approval"
    """Summarised, and held until a person approves the post."""


class PreparationStep(StrEnum):
    """What is done for an item before it is posted."""

    DOWNLOAD = "download"
    SCREENING = "screening"
    SUMMARY = "summary"


class StepState(StrEnum):
    """How a step went."""

    STARTED = "started"
    """Its request may have left. If its run is no longer RUNNING, whether it was answered is not known."""

    DONE = "done"
    FAILED = "failed"


class PostKind(StrEnum):
    """What is sent to an account."""

    POST = "post"
    EDIT = "edit"
    """Of the item's post, because the article changed."""

    REPLY = "reply"
    """To the item's post, because the article changed."""


items = Table(
    "items",
    metadata,
    Column("id", BigId, primary_key=True, autoincrement=True),
    Column("url", KeyText, nullable=False),
    Column("title", PlainText, nullable=False),
    Column("published_at", Timestamp, nullable=False),
    Column("status", Integer, nullable=False),
    Column("reason", Integer),
    Column("retry_count", Integer, nullable=False),
    Column("created_at", Timestamp, nullable=False),
    Column("last_checked_at", Timestamp, nullable=False),
    CheckConstraint("status BETWEEN 0 AND 3", name="status"),
    CheckConstraint(
        "(status IN (0, 2) AND reason IS NULL)"
        " OR (status = 1 AND reason IS NOT NULL AND reason BETWEEN 1 AND 5)"
        " OR (status = 3 AND (reason IS NULL OR reason IN (0, 6)))",
        name="reason",
    ),
    CheckConstraint("retry_count >= 0", name="retry_count"),
    CheckConstraint("last_checked_at >= created_at", name="last_checked_at"),
    Index("idx_items_url", "url", unique=True),
    Index("idx_items_status_last_checked_at", "status", "last_checked_at"),
    Index("idx_items_status_published_at", "status", "published_at"),
    sqlite_autoincrement=True,
)

feeds = Table(
    "tsuzuki_feeds",
    metadata,
    Column("id", BigId, primary_key=True, autoincrement=True),
    Column("job_name", Text, nullable=False),
    Column("name", KeyText, nullable=False),
    Column("url", KeyText, nullable=False),
    Column("moved_to", KeyText),
    Column("etag", PlainText),
    Column("last_modified", PlainText),
    Column("is_conditional", Boolean, nullable=False),
    Column("body_hash", Text),
    Column("title", PlainText),
    Column("first_good_at", UtcTime),
    Column("tried_at", UtcTime),
    Column("good_at", UtcTime),
    Column("full_at", UtcTime),
    Column("new_at", UtcTime),
    Column("failing_since", UtcTime),
    Column("failures", Integer, nullable=False),
    Column("error", PlainText),
    Column("not_before", UtcTime),
    Column("ended_at", UtcTime),
    Column("removed_at", UtcTime),
    Column("held_by_run", BigInteger),
    CheckConstraint("failures >= 0", name="failures"),
    CheckConstraint("(failures = 0) = (failing_since IS NULL)", name="failing_since"),
    UniqueConstraint("job_name", "name"),
    sqlite_autoincrement=True,
)

waiting_items = Table(
    "tsuzuki_waiting_items",
    metadata,
    Column("item_id", BigId, ForeignKey(items.c.id), primary_key=True, autoincrement=False),
    # None until a feed lists the item or a run gives it to one: another program has put it into `items`.
    Column("feed_id", BigInteger, ForeignKey(feeds.c.id)),
    Column("state", Text, nullable=False),
    Column("is_pending", Boolean, nullable=False),
    # When it was published if it is pending, else when it was checked last: the order of drawing.
    Column("order_at", UtcTime, nullable=False),
    Column("not_before", UtcTime),
    Column("held_by_run", BigInteger),
    # The last run that drew it, which does not draw it again.
    Column("drawn_by_run", BigInteger),
    Column("is_approved", Boolean, nullable=False, server_default=false()),
    one_of("state", WaitingState),
    CheckConstraint("(state = 'taken') = (held_by_run IS NOT NULL)", name="held_by_run"),
    CheckConstraint("(state = 'backoff') = (not_before IS NOT NULL)", name="not_before"),
    CheckConstraint("state <> 'approval' OR is_pending", name="approval"),
    Index(
        "tsuzuki_ix_waiting_items_feed_id_state",
        "feed_id",
        "state",
        "is_pending",
        "order_at",
        "item_id",
    ),
)
partial_index(
    "tsuzuki_ix_waiting_items_held_by_run",
    waiting_items.c.held_by_run,
    where="held_by_run IS NOT NULL",
)
partial_index(
    "tsuzuki_ix_waiting_items_not_before",
    waiting_items.c.not_before,
    where="not_before IS NOT NULL",
)

item_details = Table(
    "tsuzuki_item_details",
    metadata,
    Column("item_id", BigId, ForeignKey(items.c.id), primary_key=True, autoincrement=False),
    Column("feed_id", BigInteger, ForeignKey(feeds.c.id), nullable=False),
    Column("canonical_url", KeyText, nullable=False),
    Column("author", PlainText),
    Column("categories", JsonText, nullable=False),
    Column("excerpt", PlainText, nullable=False),
    Column("attachments", JsonText, nullable=False),
    Column("content_hash", Text, nullable=False),
    Column("changed_at", UtcTime),
    Column("cause", PlainText),
    Index("tsuzuki_ix_item_details_feed_id", "feed_id", "item_id"),
)

item_pages = Table(
    "tsuzuki_item_pages",
    metadata,
    Column("item_id", BigId, ForeignKey(items.c.id), primary_key=True, autoincrement=False),
    Column("final_url", PlainText, nullable=False),
    Column("text", PlainText, nullable=False),
    Column("content_hash", Text, nullable=False),
    Column("downloaded_at", UtcTime, nullable=False),
)

item_steps = Table(
    "tsuzuki_item_steps",
    metadata,
    Column("id", BigId, primary_key=True, autoincrement=True),
    Column("item_id", BigInteger, ForeignKey(items.c.id), nullable=False),
    Column("run_id", BigInteger, nullable=False),
    Column("step", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("model", PlainText),
    Column("prompt_version", Text),
    Column("input_hash", Text),
    Column("result", JsonText),
    Column("error_code", Text),
    Column("error", PlainText),
    Column("is_paid", Boolean, nullable=False),
    Column("input_tokens", BigInteger, nullable=False),
    Column("output_tokens", BigInteger, nullable=False),
    Column("cost_micros", BigInteger),
    Column("started_at", UtcTime, nullable=False),
    Column("ended_at", UtcTime),
    one_of("step", PreparationStep),
    one_of("state", StepState),
    CheckConstraint("(state = 'started') = (ended_at IS NULL)", name="ended_at"),
    CheckConstraint("input_tokens >= 0 AND output_tokens >= 0", name="tokens"),
    Index("tsuzuki_ix_item_steps_item_id", "item_id", "id"),
    sqlite_autoincrement=True,
)

item_fingerprints = Table(
    "tsuzuki_item_fingerprints",
    metadata,
    Column("fingerprint", Text, primary_key=True),
    Column("item_id", BigInteger, ForeignKey(items.c.id), nullable=False),
    sqlite_with_rowid=False,
)

feed_items = Table(
    "tsuzuki_feed_items",
    metadata,
    Column("feed_id", BigInteger, ForeignKey(feeds.c.id), primary_key=True),
    Column("item_id", BigInteger, ForeignKey(items.c.id), primary_key=True),
    Column("first_seen_at", UtcTime, nullable=False),
    Index("tsuzuki_ix_feed_items_item_id", "item_id"),
    sqlite_with_rowid=False,
)

feed_unusable_entries = Table(
    "tsuzuki_feed_unusable_entries",
    metadata,
    Column("feed_id", BigInteger, ForeignKey(feeds.c.id), primary_key=True),
    Column("entry_hash", Text, primary_key=True),
    Column("title", PlainText, nullable=False),
    Column("problem", PlainText, nullable=False),
    Column("first_seen_at", UtcTime, nullable=False),
    sqlite_with_rowid=False,
)

feed_posts = Table(
    "tsuzuki_feed_posts",
    metadata,
    Column("id", BigId, primary_key=True, autoincrement=True),
    Column("job_name", Text, nullable=False),
    Column("feed_id", BigInteger, ForeignKey(feeds.c.id), nullable=False),
    Column("item_id", BigInteger, ForeignKey(items.c.id), nullable=False),
    Column("kind", Text, nullable=False),
    Column("account", Text, nullable=False),
    Column("idempotency_key", Text, nullable=False, unique=True),
    Column("state", Text, nullable=False),
    Column("body", JsonText, nullable=False),
    Column("content_hash", Text, nullable=False),
    Column("remote_id", PlainText),
    Column("remote_url", PlainText),
    Column("created_at", UtcTime, nullable=False),
    Column("changed_at", UtcTime, nullable=False),
    Column("sent_by_run", BigInteger),
    Column("error", PlainText),
    # While it is not known whether it arrived: how often it was looked for, how often in a row it was not there, and
    # when it is looked for next; without a time only a person can settle it.
    Column("looks", Integer, nullable=False, server_default="0"),
    Column("absences", Integer, nullable=False, server_default="0"),
    Column("next_look_at", UtcTime),
    one_of("kind", PostKind),
    one_of("state", OutboxState),
    Index("tsuzuki_ix_feed_posts_job_name_state", "job_name", "state"),
    # SENT is the last state, so `changed_at` is when it was sent: the caps count by it.
    Index("tsuzuki_ix_feed_posts_feed_id_state", "feed_id", "state", "changed_at"),
    Index("tsuzuki_ix_feed_posts_item_id", "item_id", "id"),
    Index("tsuzuki_ix_feed_posts_sent_by_run", "sent_by_run", "id"),
    sqlite_autoincrement=True,
)
partial_index(
    "tsuzuki_uq_feed_posts_item_id_post", feed_posts.c.item_id, where="kind = 'post'", unique=True
)

feed_budget_use = Table(
    "tsuzuki_feed_budget_use",
    metadata,
    Column("scope", KeyText, primary_key=True),
    Column("time_window", Text, primary_key=True),
    Column("requests", Integer, nullable=False),
    Column("tokens", BigInteger, nullable=False),
    Column("cost_micros", BigInteger, nullable=False),
    CheckConstraint("requests >= 0 AND tokens >= 0 AND cost_micros >= 0", name="use"),
)

feed_models = Table(
    "tsuzuki_feed_models",
    metadata,
    Column("model", KeyText, primary_key=True),
    Column("parked_until", UtcTime, nullable=False),
    Column("probe_at", UtcTime, nullable=False),
    Column("why", PlainText, nullable=False),
)

feed_accounts = Table(
    "tsuzuki_feed_accounts",
    metadata,
    Column("account", KeyText, primary_key=True),
    Column("limits", JsonText),
    Column("limits_read_at", UtcTime),
    Column("limited_until", UtcTime),
)


def _former_tables() -> FormerTables:
    from tsuzuki.collectors.feeds.queries.former import former_tables  # noqa: PLC0415 -- it needs the tables

    return former_tables()


def _problems(connection: Connection) -> list[str]:
    from tsuzuki.collectors.feeds.queries.inspection import problems  # noqa: PLC0415 -- it needs the tables

    return problems(connection)


COMPONENT = Component(
    name="feeds",
    metadata=metadata,
    versions=Path(__file__).parent / "versions",
    former=_former_tables,
    inspect=_problems,
)
