"""The tables of feeds, empty."""

import sqlalchemy as sa
from alembic import op

revision = "feeds_0001"
down_revision = None
branch_labels = ("feeds",)
depends_on = None


def Id() -> sa.BigInteger:
    return sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def Time() -> sa.DateTime:
    return sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")


def Timestamp() -> sa.DateTime:
    """What the design calls it. SQLite stores the same text in it as in the others."""
    return sa.DateTime(timezone=True).with_variant(sa.TIMESTAMP(), "sqlite")


def upgrade() -> None:
    make_items()
    make_feeds()
    make_waiting_items()
    make_item_details()
    make_item_pages()
    make_item_steps()
    make_item_fingerprints()
    make_feed_items()
    make_feed_unusable_entries()
    make_feed_posts()
    make_feed_budget_use()
    make_feed_models()
    make_feed_accounts()


def make_items() -> None:
    op.create_table(
        "items",
        sa.Column("id", Id(), autoincrement=True, nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("published_at", Timestamp(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("reason", sa.Integer(), nullable=True),
        sa.Column("retry_count", sa.Integer(), nullable=False),
        sa.Column("created_at", Timestamp(), nullable=False),
        sa.Column("last_checked_at", Timestamp(), nullable=False),
        sa.CheckConstraint(
            "(status IN (0, 2) AND reason IS NULL) OR (status = 1 AND reason IS NOT NULL AND reason BETWEEN 1 AND 5) OR (status = 3 AND (reason IS NULL OR reason IN (0, 6)))",
            name=op.f("ck_items_reason"),
        ),
        sa.CheckConstraint("last_checked_at >= created_at", name=op.f("ck_items_last_checked_at")),
        sa.CheckConstraint("retry_count >= 0", name=op.f("ck_items_retry_count")),
        sa.CheckConstraint("status BETWEEN 0 AND 3", name=op.f("ck_items_status")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_items")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "idx_items_status_last_checked_at", "items", ["status", "last_checked_at"], unique=False
    )
    op.create_index(
        "idx_items_status_published_at", "items", ["status", "published_at"], unique=False
    )
    op.create_index("idx_items_url", "items", ["url"], unique=True)


def make_feeds() -> None:
    op.create_table(
        "feeds",
        sa.Column("id", Id(), autoincrement=True, nullable=False),
        sa.Column("job_name", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("moved_to", sa.Text(), nullable=True),
        sa.Column("etag", sa.Text(), nullable=True),
        sa.Column("last_modified", sa.Text(), nullable=True),
        sa.Column("is_conditional", sa.Boolean(), nullable=False),
        sa.Column("body_hash", sa.Text(), nullable=True),
        sa.Column("title", sa.Text(), nullable=True),
        sa.Column("first_good_at", Time(), nullable=True),
        sa.Column("tried_at", Time(), nullable=True),
        sa.Column("good_at", Time(), nullable=True),
        sa.Column("full_at", Time(), nullable=True),
        sa.Column("new_at", Time(), nullable=True),
        sa.Column("failing_since", Time(), nullable=True),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("not_before", Time(), nullable=True),
        sa.Column("ended_at", Time(), nullable=True),
        sa.Column("removed_at", Time(), nullable=True),
        sa.Column("held_by_run", sa.BigInteger(), nullable=True),
        sa.CheckConstraint(
            "(failures = 0) = (failing_since IS NULL)", name=op.f("ck_feeds_failing_since")
        ),
        sa.CheckConstraint("failures >= 0", name=op.f("ck_feeds_failures")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_feeds")),
        sa.UniqueConstraint("job_name", "name", name=op.f("uq_feeds_job_name_name")),
        sqlite_autoincrement=True,
    )


def make_waiting_items() -> None:
    op.create_table(
        "waiting_items",
        sa.Column("item_id", Id(), autoincrement=False, nullable=False),
        sa.Column("feed_id", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("is_pending", sa.Boolean(), nullable=False),
        sa.Column("order_at", Time(), nullable=False),
        sa.Column("not_before", Time(), nullable=True),
        sa.Column("held_by_run", sa.BigInteger(), nullable=True),
        sa.Column("drawn_by_run", sa.BigInteger(), nullable=True),
        sa.Column("is_approved", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.CheckConstraint(
            "(state = 'backoff') = (not_before IS NOT NULL)",
            name=op.f("ck_waiting_items_not_before"),
        ),
        sa.CheckConstraint(
            "(state = 'taken') = (held_by_run IS NOT NULL)",
            name=op.f("ck_waiting_items_held_by_run"),
        ),
        sa.CheckConstraint(
            "state <> 'approval' OR is_pending", name=op.f("ck_waiting_items_approval")
        ),
        sa.CheckConstraint(
            "state IN ('ready', 'taken', 'backoff', 'approval')",
            name=op.f("ck_waiting_items_state"),
        ),
        sa.ForeignKeyConstraint(["feed_id"], ["feeds.id"], name=op.f("fk_waiting_items_feed_id")),
        sa.ForeignKeyConstraint(["item_id"], ["items.id"], name=op.f("fk_waiting_items_item_id")),
        sa.PrimaryKeyConstraint("item_id", name=op.f("pk_waiting_items")),
    )
    op.create_index(
        "ix_waiting_items_feed_id_state",
        "waiting_items",
        ["feed_id", "state", "is_pending", "order_at", "item_id"],
        unique=False,
    )
    op.create_index(
        "ix_waiting_items_held_by_run",
        "waiting_items",
        ["held_by_run"],
        unique=False,
        sqlite_where=sa.text("held_by_run IS NOT NULL"),
        postgresql_where=sa.text("held_by_run IS NOT NULL"),
    )
    op.create_index(
        "ix_waiting_items_not_before",
        "waiting_items",
        ["not_before"],
        unique=False,
        sqlite_where=sa.text("not_before IS NOT NULL"),
        postgresql_where=sa.text("not_before IS NOT NULL"),
    )
    # ### end Alembic commands ###


def make_item_details() -> None:
    op.create_table(
        "item_details",
        sa.Column("item_id", Id(), autoincrement=False, nullable=False),
        sa.Column("feed_id", sa.BigInteger(), nullable=False),
        sa.Column("canonical_url", sa.Text(), nullable=False),
        sa.Column("author", sa.Text(), nullable=True),
        sa.Column("categories", sa.Text(), nullable=False),
        sa.Column("excerpt", sa.Text(), nullable=False),
        sa.Column("attachments", sa.Text(), nullable=False),
        sa.Column("content_hash", sa.Text(), nullable=False),
        sa.Column("changed_at", Time(), nullable=True),
        sa.Column("cause", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["feed_id"], ["feeds.id"], name=op.f("fk_item_details_feed_id")),
        sa.ForeignKeyConstraint(["item_id"], ["items.id"], name=op.f("fk_item_details_item_id")),
        sa.PrimaryKeyConstraint("item_id", name=op.f("pk_item_details")),
    )
    op.create_index("ix_item_details_feed_id", "item_details", ["feed_id", "item_id"], unique=False)


def make_item_pages() -> None:
    op.create_table(
        "item_pages",
        sa.Column("item_id", Id(), autoincrement=False, nullable=False),
        sa.Column("final_url", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("content_hash", sa.Text(), nullable=False),
        sa.Column("downloaded_at", Time(), nullable=False),
        sa.ForeignKeyConstraint(["item_id"], ["items.id"], name=op.f("fk_item_pages_item_id")),
        sa.PrimaryKeyConstraint("item_id", name=op.f("pk_item_pages")),
    )


def make_item_steps() -> None:
    op.create_table(
        "item_steps",
        sa.Column("id", Id(), autoincrement=True, nullable=False),
        sa.Column("item_id", sa.BigInteger(), nullable=False),
        sa.Column("run_id", sa.BigInteger(), nullable=False),
        sa.Column("step", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column("prompt_version", sa.Text(), nullable=True),
        sa.Column("input_hash", sa.Text(), nullable=True),
        sa.Column("result", sa.Text(), nullable=True),
        sa.Column("error_code", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("is_paid", sa.Boolean(), nullable=False),
        sa.Column("input_tokens", sa.BigInteger(), nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), nullable=False),
        sa.Column("cost_micros", sa.BigInteger(), nullable=True),
        sa.Column("started_at", Time(), nullable=False),
        sa.Column("ended_at", Time(), nullable=True),
        sa.CheckConstraint(
            "(state = 'started') = (ended_at IS NULL)", name=op.f("ck_item_steps_ended_at")
        ),
        sa.CheckConstraint(
            "state IN ('started', 'done', 'failed')", name=op.f("ck_item_steps_state")
        ),
        sa.CheckConstraint(
            "step IN ('download', 'screening', 'summary')", name=op.f("ck_item_steps_step")
        ),
        sa.CheckConstraint(
            "input_tokens >= 0 AND output_tokens >= 0", name=op.f("ck_item_steps_tokens")
        ),
        sa.ForeignKeyConstraint(["item_id"], ["items.id"], name=op.f("fk_item_steps_item_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_item_steps")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_item_steps_item_id", "item_steps", ["item_id", "id"], unique=False)


def make_item_fingerprints() -> None:
    op.create_table(
        "item_fingerprints",
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("item_id", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["item_id"], ["items.id"], name=op.f("fk_item_fingerprints_item_id")
        ),
        sa.PrimaryKeyConstraint("fingerprint", name=op.f("pk_item_fingerprints")),
        sqlite_with_rowid=False,
    )


def make_feed_items() -> None:
    op.create_table(
        "feed_items",
        sa.Column("feed_id", sa.BigInteger(), nullable=False),
        sa.Column("item_id", sa.BigInteger(), nullable=False),
        sa.Column("first_seen_at", Time(), nullable=False),
        sa.ForeignKeyConstraint(["feed_id"], ["feeds.id"], name=op.f("fk_feed_items_feed_id")),
        sa.ForeignKeyConstraint(["item_id"], ["items.id"], name=op.f("fk_feed_items_item_id")),
        sa.PrimaryKeyConstraint("feed_id", "item_id", name=op.f("pk_feed_items")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_feed_items_item_id", "feed_items", ["item_id"], unique=False)


def make_feed_unusable_entries() -> None:
    op.create_table(
        "feed_unusable_entries",
        sa.Column("feed_id", sa.BigInteger(), nullable=False),
        sa.Column("entry_hash", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("problem", sa.Text(), nullable=False),
        sa.Column("first_seen_at", Time(), nullable=False),
        sa.ForeignKeyConstraint(
            ["feed_id"], ["feeds.id"], name=op.f("fk_feed_unusable_entries_feed_id")
        ),
        sa.PrimaryKeyConstraint("feed_id", "entry_hash", name=op.f("pk_feed_unusable_entries")),
        sqlite_with_rowid=False,
    )


def make_feed_posts() -> None:
    op.create_table(
        "feed_posts",
        sa.Column("id", Id(), autoincrement=True, nullable=False),
        sa.Column("job_name", sa.Text(), nullable=False),
        sa.Column("feed_id", sa.BigInteger(), nullable=False),
        sa.Column("item_id", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("idempotency_key", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("content_hash", sa.Text(), nullable=False),
        sa.Column("remote_id", sa.Text(), nullable=True),
        sa.Column("remote_url", sa.Text(), nullable=True),
        sa.Column("created_at", Time(), nullable=False),
        sa.Column("changed_at", Time(), nullable=False),
        sa.Column("sent_by_run", sa.BigInteger(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.CheckConstraint("kind IN ('post', 'edit', 'reply')", name=op.f("ck_feed_posts_kind")),
        sa.CheckConstraint(
            "state IN ('intended', 'sending', 'sent', 'refused', 'unsettled')",
            name=op.f("ck_feed_posts_state"),
        ),
        sa.ForeignKeyConstraint(["feed_id"], ["feeds.id"], name=op.f("fk_feed_posts_feed_id")),
        sa.ForeignKeyConstraint(["item_id"], ["items.id"], name=op.f("fk_feed_posts_item_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_feed_posts")),
        sa.UniqueConstraint("idempotency_key", name=op.f("uq_feed_posts_idempotency_key")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_feed_posts_feed_id_state",
        "feed_posts",
        ["feed_id", "state", "changed_at"],
        unique=False,
    )
    op.create_index("ix_feed_posts_item_id", "feed_posts", ["item_id", "id"], unique=False)
    op.create_index(
        "ix_feed_posts_job_name_state", "feed_posts", ["job_name", "state"], unique=False
    )
    op.create_index(
        "uq_feed_posts_item_id_post",
        "feed_posts",
        ["item_id"],
        unique=True,
        sqlite_where=sa.text("kind = 'post'"),
        postgresql_where=sa.text("kind = 'post'"),
    )


def make_feed_budget_use() -> None:
    op.create_table(
        "feed_budget_use",
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("time_window", sa.Text(), nullable=False),
        sa.Column("requests", sa.Integer(), nullable=False),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
        sa.Column("cost_micros", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(
            "requests >= 0 AND tokens >= 0 AND cost_micros >= 0",
            name=op.f("ck_feed_budget_use_use"),
        ),
        sa.PrimaryKeyConstraint("scope", "time_window", name=op.f("pk_feed_budget_use")),
    )


def make_feed_models() -> None:
    op.create_table(
        "feed_models",
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("parked_until", Time(), nullable=False),
        sa.Column("probe_at", Time(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("model", name=op.f("pk_feed_models")),
    )


def make_feed_accounts() -> None:
    op.create_table(
        "feed_accounts",
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("limits", sa.Text(), nullable=True),
        sa.Column("limits_read_at", Time(), nullable=True),
        sa.Column("limited_until", Time(), nullable=True),
        sa.PrimaryKeyConstraint("account", name=op.f("pk_feed_accounts")),
    )
