"""The tables of operating the engine: bulk actions, requested cancels and stacks, failing loops, past terms."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKeyConstraint,
    Integer,
    Table,
    Text,
)

from tsuzuki.model.bulk import BulkResult, BulkVerb
from tsuzuki.store.schema.tables import metadata, one_of
from tsuzuki.store.sql.types import BigId, JsonText, PlainText, UtcTime

# One action on every run that a frozen filter matches. `position` is the id up to which it was carried out.
bulk_actions = Table(
    "tsuzuki_bulk_actions",
    metadata,
    Column("id", BigId, primary_key=True, autoincrement=True),
    Column("verb", Text, nullable=False),
    Column("filter", JsonText, nullable=False),
    Column("ceiling_id", BigInteger, nullable=False),
    Column("matched", Integer, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("confirmed_at", UtcTime),
    Column("confirmed_by", Text),
    Column("run_id", BigId),
    Column("position", BigInteger, nullable=False, server_default="0"),
    Column("done", Integer, nullable=False, server_default="0"),
    Column("stopped_at", UtcTime),
    Column("finished_at", UtcTime),
    one_of("verb", BulkVerb),
    CheckConstraint("matched >= 0 AND done >= 0", name="matched"),
    CheckConstraint("position >= 0 AND position <= ceiling_id", name="position"),
    CheckConstraint(
        "(confirmed_at IS NULL) = (confirmed_by IS NULL)"
        " AND (confirmed_at IS NOT NULL OR"
        " (run_id IS NULL AND stopped_at IS NULL AND finished_at IS NULL AND done = 0))",
        name="confirmed",
    ),
    sqlite_autoincrement=True,
)

bulk_action_runs = Table(
    "tsuzuki_bulk_action_runs",
    metadata,
    Column("bulk_id", BigId, primary_key=True, autoincrement=False),
    # No foreign key: a finished run may be pruned before the action that changed it.
    Column("run_id", BigId, primary_key=True, autoincrement=False),
    Column("result", Text, nullable=False),
    Column("new_run_id", BigId),
    one_of("result", BulkResult),
    CheckConstraint("(result = 'retried') = (new_run_id IS NOT NULL)", name="new_run_id"),
    ForeignKeyConstraint(["bulk_id"], ["tsuzuki_bulk_actions.id"], ondelete="CASCADE"),
    sqlite_with_rowid=False,
)

# A run that is to be canceled as soon as its row is free. No foreign key: its check would wait for the row's lock.
run_cancel_requests = Table(
    "tsuzuki_run_cancel_requests",
    metadata,
    Column("run_id", BigId, primary_key=True, autoincrement=False),
    Column("reason", Text, nullable=False),
    Column("requested_by", Text, nullable=False),
    Column("requested_at", UtcTime, nullable=False),
    CheckConstraint("reason IN ('operator', 'replaced')", name="reason"),
)

# A request for the live stack of a run, and its worker's answer. No foreign key, as above.
run_stacks = Table(
    "tsuzuki_run_stacks",
    metadata,
    Column("run_id", BigId, primary_key=True, autoincrement=False),
    Column("requested_at", UtcTime, nullable=False),
    Column("stack", PlainText),
    Column("dumped_at", UtcTime),
    CheckConstraint("(stack IS NULL) = (dumped_at IS NULL)", name="dumped"),
)

# Written by the process whose loop it is, again and again while the loop fails: a row whose `seen_at` is old was left
# by a process that is gone.
failing_loops = Table(
    "tsuzuki_failing_loops",
    metadata,
    Column("process", Text, primary_key=True),
    Column("loop", Text, primary_key=True),
    Column("failures", Integer, nullable=False),
    Column("since", UtcTime, nullable=False),
    Column("seen_at", UtcTime, nullable=False),
    Column("code", Text, nullable=False),
    Column("error", PlainText, nullable=False),
)

# Written by triggers on leadership only. `ended_at` is empty for the current term.
leader_terms = Table(
    "tsuzuki_leader_terms",
    metadata,
    Column("epoch", BigInteger, primary_key=True, autoincrement=False),
    Column("holder", Text, nullable=False),
    Column("taken_at", UtcTime, nullable=False),
    Column("ended_at", UtcTime),
)
