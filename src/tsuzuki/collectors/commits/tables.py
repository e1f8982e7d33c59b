"""What is kept: the tables of the collection as they were specified, and what we add beside them.

`projects`, `commits`, `bulk_collection_runs` and `bulk_collection_results` are the specified ones; their
times are ISO-8601 text with `Z`. `commit_targets` knows where each branch stands, so that a collection
continues from a head instead of a date; `commit_totals` holds what the statistics add up, each commit of
a project once however many branches have it. `commit_parents`, `commit_paths` and `commit_path_counts` tell more
about a commit, once per project; `commit_completions` says for which branches they are complete, `commit_absences`
which parents a source does not have. The database
itself refuses a second running collection and counters that cannot be.
"""

from enum import StrEnum
from pathlib import Path

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
)

from tsuzuki.collectors.commits.report_tables import metadata
from tsuzuki.store.schema.migrate import Component
from tsuzuki.store.schema.tables import one_of, partial_index
from tsuzuki.store.schema.takeover import FormerTables
from tsuzuki.store.sql.types import BigId, KeyText, PlainText


class ProjectKind(StrEnum):
    """Where a project's commits come from."""

    GITLAB = "gitlab"
    """A GitLab server, asked over its API; `location` is the server, `remote_id` the project."""

    GIT = "git"
    """A repository on this machine or a git URL; `location` is its path or URL."""


class CollectionStatus(StrEnum):
    """Where a collection is. What has ended stays so."""

    RUNNING = "running"
    """At most one, by the schema. A crash leaves it; the next attempt goes on with what is pending."""

    COMPLETED = "completed"
    """Every target was worked on; some may have failed."""

    CANCELLED = "cancelled"
    """Stopped by a person: finished results are kept, the rest stays pending."""


class ResultStatus(StrEnum):
    """How one target of a collection went."""

    PENDING = "pending"
    """Not begun, under way, or left by a cancel."""

    SUCCESS = "success"
    FAILED = "failed"


class NoteKind(StrEnum):
    """What was met on the way that a person should know, though the target went well."""

    FORCE_PUSH = "force_push"
    HISTORY_REPLACED = "history_replaced"
    HEAD_UNKNOWN = "head_unknown"
    BRANCH_GONE = "branch_gone"
    EMPTY_REPOSITORY = "empty_repository"
    PROJECT_RENAMED = "project_renamed"
    DEFAULT_MOVED = "default_moved"
    PARENTS_ABSENT = "parents_absent"
    DATE_NOT_VALID = "date_not_valid"
    """Kept commit by commit in `commit_date_notes`."""


_NOTE_KINDS = ", ".join(f"'{kind}'" for kind in NoteKind if kind is not NoteKind.DATE_NOT_VALID)
_IS_UUID4 = (
    "run_id LIKE '________-____-4___-____-____________'"
    " AND substr(run_id, 20, 1) IN ('8', '9', 'a', 'b')"
    " AND length(replace(run_id, '-', '')) = 32"
    " AND ltrim(run_id, '0123456789abcdef-') = ''"
)

projects = Table(
    "projects",
    metadata,
    Column("project_id", BigId, primary_key=True, autoincrement=True),
    Column("kind", Text, nullable=False),
    Column("location", KeyText, nullable=False),
    Column("remote_id", BigId),
    Column("path", PlainText, nullable=False),
    Column("name", PlainText, nullable=False),
    Column("url", PlainText, nullable=False),
    Column("default_branch", PlainText),
    Column("is_archived", Boolean, nullable=False),
    Column("added_at_utc", Text, nullable=False),
    Column("synced_at_utc", Text, nullable=False),
    one_of("kind", ProjectKind),
    CheckConstraint("(kind = 'gitlab') = (remote_id IS NOT NULL)", name="remote_id"),
    sqlite_autoincrement=True,
)
partial_index(
    "tsuzuki_uq_projects_remote",
    projects.c.location,
    projects.c.remote_id,
    where="kind = 'gitlab'",
    unique=True,
)
partial_index(
    "tsuzuki_uq_projects_repository",
    projects.c.location,
    where="kind = 'git'",
    unique=True,
)

commits = Table(
    "commits",
    metadata,
    Column("project_id", BigId, ForeignKey("projects.project_id"), nullable=False),
    Column("branch_name", Text, nullable=False),
    Column("sha", Text, nullable=False),
    Column("author_name", Text, nullable=False),
    Column("author_email", Text, nullable=False),
    Column("committed_date_utc", Text, nullable=False),
    Column("additions", Integer, nullable=False),
    Column("deletions", Integer, nullable=False),
    UniqueConstraint("project_id", "branch_name", "sha"),
)
Index(
    "tsuzuki_idx_commits_target_committed",
    commits.c.project_id,
    commits.c.branch_name,
    commits.c.committed_date_utc,
)

bulk_collection_runs = Table(
    "bulk_collection_runs",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("started_at_utc", Text, nullable=False),
    Column("completed_at_utc", Text),
    Column("status", Text, nullable=False),
    Column("total_targets", Integer, nullable=False),
    Column("completed_count", Integer, nullable=False, server_default="0"),
    Column("failed_count", Integer, nullable=False, server_default="0"),
    Column("success_count", Integer, nullable=False, server_default="0"),
    one_of("status", CollectionStatus),
    CheckConstraint(_IS_UUID4, name="run_id"),
    CheckConstraint(
        "completed_count >= 0 AND failed_count >= 0"
        " AND completed_count + failed_count <= total_targets",
        name="counts",
    ),
    CheckConstraint("completed_count = success_count", name="completed_count"),
    CheckConstraint(
        "(status = 'running') = (completed_at_utc IS NULL)",
        name="completed_at_utc",
    ),
    CheckConstraint(
        "status <> 'completed' OR completed_count + failed_count = total_targets",
        name="completed",
    ),
)
Index(
    "idx_bulk_runs_status_started",
    bulk_collection_runs.c.status,
    bulk_collection_runs.c.started_at_utc,
)
partial_index(
    "tsuzuki_uq_bulk_runs_running",
    bulk_collection_runs.c.status,
    where="status = 'running'",
    unique=True,
)

bulk_collection_results = Table(
    "bulk_collection_results",
    metadata,
    Column(
        "run_id",
        Text,
        ForeignKey("bulk_collection_runs.run_id", ondelete="CASCADE"),
        nullable=False,
    ),
    Column("project_id", BigId, nullable=False),
    Column("branch_name", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("new_commits_count", Integer),
    Column("error_message", Text),
    Column("processed_at_utc", Text),
    PrimaryKeyConstraint("run_id", "project_id", "branch_name"),
    one_of("status", ResultStatus),
    CheckConstraint("(status = 'success') = (new_commits_count IS NOT NULL)", name="success"),
    CheckConstraint("(status = 'failed') = (error_message IS NOT NULL)", name="failed"),
    CheckConstraint("(status = 'pending') = (processed_at_utc IS NULL)", name="pending"),
)
Index(
    "idx_bulk_results_run_status",
    bulk_collection_results.c.run_id,
    bulk_collection_results.c.status,
)
Index(
    "idx_bulk_results_target_status",
    bulk_collection_results.c.project_id,
    bulk_collection_results.c.branch_name,
    bulk_collection_results.c.status,
)

bulk_collection_notes = Table(
    "tsuzuki_bulk_collection_notes",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("project_id", BigId, primary_key=True, autoincrement=False),
    Column("branch_name", Text, primary_key=True),
    Column("kind", Text, primary_key=True),
    Column("sentence", PlainText, nullable=False),
    ForeignKeyConstraint(
        ["run_id", "project_id", "branch_name"],
        [
            "bulk_collection_results.run_id",
            "bulk_collection_results.project_id",
            "bulk_collection_results.branch_name",
        ],
        ondelete="CASCADE",
    ),
    CheckConstraint(f"kind IN ({_NOTE_KINDS})", name="kind"),
)

# Commits whose date was not valid: `sentence` says what was there and what is stored instead.
commit_date_notes = Table(
    "tsuzuki_commit_date_notes",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("project_id", BigId, primary_key=True, autoincrement=False),
    Column("branch_name", Text, primary_key=True),
    Column("sha", Text, primary_key=True),
    Column("sentence", PlainText, nullable=False),
    ForeignKeyConstraint(
        ["run_id", "project_id", "branch_name"],
        [
            "bulk_collection_results.run_id",
            "bulk_collection_results.project_id",
            "bulk_collection_results.branch_name",
        ],
        ondelete="CASCADE",
    ),
)

# Which run of the engine works on a collection; any other that still believes it does is fenced.
bulk_collection_owners = Table(
    "tsuzuki_bulk_collection_owners",
    metadata,
    Column(
        "run_id",
        Text,
        ForeignKey("bulk_collection_runs.run_id", ondelete="CASCADE"),
        primary_key=True,
    ),
    # No foreign key: a finished run of the engine may be pruned, the collection stays.
    Column("job_run_id", BigId, nullable=False),
    Column("retry_of", Text),
)

# Where a branch stands. `head_sha` is the commit up to which everything is stored; a range that was
# begun is kept with both its ends until its last page is stored, so a crash costs at most a page. `closed_sha` is the
# head up to which every parent that a commit names is known to be stored; another one than `head_sha` where a version
# that did not check has collected.
commit_targets = Table(
    "tsuzuki_commit_targets",
    metadata,
    Column("project_id", BigId, ForeignKey("projects.project_id"), primary_key=True),
    Column("branch_name", KeyText, primary_key=True),
    Column("is_followed", Boolean, nullable=False),
    Column("is_default", Boolean, nullable=False),
    Column("head_sha", Text),
    Column("collected_at_utc", Text),
    Column("range_old", Text),
    Column("range_new", Text),
    Column("range_since_utc", Text),
    Column("range_mark", Text),
    Column("range_run_id", Text),
    Column("range_commits", Integer, nullable=False, server_default="0"),
    Column("closed_sha", Text),
    CheckConstraint(
        "range_new IS NOT NULL"
        " OR (range_old IS NULL AND range_since_utc IS NULL AND range_mark IS NULL)",
        name="range",
    ),
)

commit_totals = Table(
    "tsuzuki_commit_totals",
    metadata,
    Column("project_id", BigId, ForeignKey("projects.project_id"), primary_key=True),
    Column("month", Text, primary_key=True),
    Column("author_email", Text, primary_key=True),
    Column("author_name", Text, primary_key=True),
    Column("commits", BigId, nullable=False),
    Column("additions", BigId, nullable=False),
    Column("deletions", BigId, nullable=False),
    sqlite_with_rowid=False,
)

# One row for each stored commit of a project, written with all that is told of it: a commit that has one
# has its counts per path too, if the source can tell them. `parents` are ids with one space between.
commit_parents = Table(
    "tsuzuki_commit_parents",
    metadata,
    Column("project_id", BigId, ForeignKey("projects.project_id"), primary_key=True),
    Column("commit_sha", Text, primary_key=True),
    Column("parent_count", Integer, nullable=False),
    Column("parents", Text, nullable=False),
    CheckConstraint("parent_count >= 0", name="parent_count"),
    sqlite_with_rowid=False,
)

# Parents that a source was asked for and did not have, with the collection that first found it so.
commit_absences = Table(
    "tsuzuki_commit_absences",
    metadata,
    Column("project_id", BigId, ForeignKey("projects.project_id"), primary_key=True),
    Column("commit_sha", Text, primary_key=True),
    Column("run_id", Text, nullable=False),
)

commit_paths = Table(
    "tsuzuki_commit_paths",
    metadata,
    Column("path_id", BigId, primary_key=True, autoincrement=True),
    Column("project_id", BigId, ForeignKey("projects.project_id"), nullable=False),
    Column("path", Text, nullable=False),
    UniqueConstraint("project_id", "path"),
)

# No foreign key on the path: it would be looked up once more for each of millions of rows, and no path is
# ever removed.
commit_path_counts = Table(
    "tsuzuki_commit_path_counts",
    metadata,
    Column("project_id", BigId, primary_key=True, autoincrement=False),
    Column("commit_sha", Text, primary_key=True),
    Column("path_id", BigId, primary_key=True, autoincrement=False),
    Column("additions", Integer, nullable=False),
    Column("deletions", Integer, nullable=False),
    CheckConstraint("additions >= 0 AND deletions >= 0", name="counts"),
    sqlite_with_rowid=False,
)

# Up to where a branch is complete: every commit stored up to `head_sha`, and the pages of the range up to
# `range_mark`, have their parents and counts per path. A branch is complete if its target says the same.
commit_completions = Table(
    "tsuzuki_commit_completions",
    metadata,
    Column("project_id", BigId, primary_key=True, autoincrement=False),
    Column("branch_name", KeyText, primary_key=True),
    Column("head_sha", Text),
    Column("range_old", Text),
    Column("range_new", Text),
    Column("range_mark", Text),
    ForeignKeyConstraint(
        ["project_id", "branch_name"],
        ["tsuzuki_commit_targets.project_id", "tsuzuki_commit_targets.branch_name"],
        ondelete="CASCADE",
    ),
    CheckConstraint(
        "range_new IS NOT NULL OR (range_old IS NULL AND range_mark IS NULL)", name="range"
    ),
)


def _former_tables() -> FormerTables:
    from tsuzuki.collectors.commits.queries.former import former_tables  # noqa: PLC0415 -- it needs the tables

    return former_tables()


COMPONENT = Component(
    name="commits",
    metadata=metadata,
    versions=Path(__file__).parent / "versions",
    former=_former_tables,
)
