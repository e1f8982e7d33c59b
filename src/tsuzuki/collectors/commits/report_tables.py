"""Tables of ours that reports read: who commits, counts by day and month, and the mailmap of each project.

The counts are a rollup of `commits`. Whether they are complete is known: `commit_rollups` says how many rows
of a branch they hold (`queries.rollup`). A commit is kept under its author as written; who that is, and what
is left out, is decided when a report is made.
"""

from enum import IntEnum

from sqlalchemy import Column, ForeignKey, Integer, MetaData, Table, Text, UniqueConstraint

from tsuzuki.store.schema.tables import NAMES
from tsuzuki.store.sql.types import BigId, PlainText

metadata = MetaData(naming_convention=NAMES)
"""Of all tables of this collector."""

EACH_ONCE = 0
"""The `rollup_id` of counts in which a commit on several branches of a project counts once."""


class MergeState(IntEnum):
    """Whether a commit is a merge."""

    NO = 0
    YES = 1
    """It has more than one parent."""
    UNKNOWN = 2
    """Its parents are not stored yet."""


# An author as written in commits of a project: a mailmap is of one project.
commit_authors = Table(
    "tsuzuki_commit_authors",
    metadata,
    Column("author_id", BigId, primary_key=True, autoincrement=True),
    Column("project_id", BigId, ForeignKey("projects.project_id"), nullable=False),
    Column("author_email", Text, nullable=False),
    Column("author_name", Text, nullable=False),
    UniqueConstraint("project_id", "author_email", "author_name"),
)

commit_rollups = Table(
    "tsuzuki_commit_rollups",
    metadata,
    Column("rollup_id", BigId, primary_key=True, autoincrement=True),
    Column("project_id", BigId, ForeignKey("projects.project_id"), nullable=False),
    Column("branch_name", Text, nullable=False),
    Column("commits", BigId, nullable=False),
    UniqueConstraint("project_id", "branch_name"),
)

# A month is the number 202402, a day 20240229; 0 stands for a date that cannot be read.
commit_months = Table(
    "tsuzuki_commit_months",
    metadata,
    Column("rollup_id", BigId, primary_key=True, autoincrement=False),
    Column("author_id", BigId, ForeignKey("tsuzuki_commit_authors.author_id"), primary_key=True),
    Column("merge_state", Integer, primary_key=True, autoincrement=False),
    Column("month", Integer, primary_key=True, autoincrement=False),
    Column("commits", BigId, nullable=False),
    Column("additions", BigId, nullable=False),
    Column("deletions", BigId, nullable=False),
    sqlite_with_rowid=False,
)

# Each commit of a project once.
commit_days = Table(
    "tsuzuki_commit_days",
    metadata,
    Column("day", Integer, primary_key=True, autoincrement=False),
    Column("author_id", BigId, ForeignKey("tsuzuki_commit_authors.author_id"), primary_key=True),
    Column("merge_state", Integer, primary_key=True, autoincrement=False),
    Column("commits", BigId, nullable=False),
    Column("additions", BigId, nullable=False),
    Column("deletions", BigId, nullable=False),
    sqlite_with_rowid=False,
)

# The file `.mailmap` of the default branch, as it was at `head_sha`; empty if there is none.
commit_mailmaps = Table(
    "tsuzuki_commit_mailmaps",
    metadata,
    Column("project_id", BigId, ForeignKey("projects.project_id"), primary_key=True),
    Column("head_sha", Text, nullable=False),
    Column("content", PlainText, nullable=False),
)
