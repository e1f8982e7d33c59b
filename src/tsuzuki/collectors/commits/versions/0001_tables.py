"""The tables of the commits collector, empty."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = ("commits",)
depends_on = None


def Id() -> sa.BigInteger:
    return sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    make_bulk_collection_runs()
    make_projects()
    make_bulk_collection_owners()
    make_bulk_collection_results()
    make_commit_targets()
    make_commit_totals()
    make_commits()
    make_bulk_collection_notes()


def make_bulk_collection_runs() -> None:
    op.create_table(
        "bulk_collection_runs",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("started_at_utc", sa.Text(), nullable=False),
        sa.Column("completed_at_utc", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("total_targets", sa.Integer(), nullable=False),
        sa.Column("completed_count", sa.Integer(), server_default="0", nullable=False),
        sa.Column("failed_count", sa.Integer(), server_default="0", nullable=False),
        sa.Column("success_count", sa.Integer(), server_default="0", nullable=False),
        sa.CheckConstraint(
            "(status = 'running') = (completed_at_utc IS NULL)",
            name=op.f("ck_bulk_collection_runs_completed_at_utc"),
        ),
        sa.CheckConstraint(
            "status <> 'completed' OR completed_count + failed_count = total_targets",
            name=op.f("ck_bulk_collection_runs_completed"),
        ),
        sa.CheckConstraint(
            "status IN ('running', 'completed', 'cancelled')",
            name=op.f("ck_bulk_collection_runs_status"),
        ),
        sa.CheckConstraint(
            "completed_count = success_count", name=op.f("ck_bulk_collection_runs_completed_count")
        ),
        sa.CheckConstraint(
            "completed_count >= 0 AND failed_count >= 0 AND completed_count + failed_count <= total_targets",
            name=op.f("ck_bulk_collection_runs_counts"),
        ),
        sa.CheckConstraint("length(run_id) = 36", name=op.f("ck_bulk_collection_runs_run_id")),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_bulk_collection_runs")),
    )
    op.create_index(
        "idx_bulk_runs_status_started",
        "bulk_collection_runs",
        ["status", "started_at_utc"],
        unique=False,
    )
    op.create_index(
        "uq_bulk_runs_running",
        "bulk_collection_runs",
        ["status"],
        unique=True,
        sqlite_where=sa.text("status = 'running'"),
        postgresql_where=sa.text("status = 'running'"),
    )


def make_projects() -> None:
    op.create_table(
        "projects",
        sa.Column("project_id", Id(), autoincrement=True, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("location", sa.Text(), nullable=False),
        sa.Column("remote_id", Id(), nullable=True),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("default_branch", sa.Text(), nullable=True),
        sa.Column("is_archived", sa.Boolean(), nullable=False),
        sa.Column("added_at_utc", sa.Text(), nullable=False),
        sa.Column("synced_at_utc", sa.Text(), nullable=False),
        sa.CheckConstraint(
            "(kind = 'gitlab') = (remote_id IS NOT NULL)", name=op.f("ck_projects_remote_id")
        ),
        sa.CheckConstraint("kind IN ('gitlab', 'git')", name=op.f("ck_projects_kind")),
        sa.PrimaryKeyConstraint("project_id", name=op.f("pk_projects")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "uq_projects_remote",
        "projects",
        ["location", "remote_id"],
        unique=True,
        sqlite_where=sa.text("kind = 'gitlab'"),
        postgresql_where=sa.text("kind = 'gitlab'"),
    )
    op.create_index(
        "uq_projects_repository",
        "projects",
        ["location"],
        unique=True,
        sqlite_where=sa.text("kind = 'git'"),
        postgresql_where=sa.text("kind = 'git'"),
    )


def make_bulk_collection_owners() -> None:
    op.create_table(
        "bulk_collection_owners",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("job_run_id", Id(), nullable=False),
        sa.Column("retry_of", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["run_id"],
            ["bulk_collection_runs.run_id"],
            name=op.f("fk_bulk_collection_owners_run_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_bulk_collection_owners")),
    )


def make_bulk_collection_results() -> None:
    op.create_table(
        "bulk_collection_results",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("project_id", Id(), nullable=False),
        sa.Column("branch_name", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("new_commits_count", sa.Integer(), nullable=True),
        sa.Column("error_message", sa.Text(), nullable=True),
        sa.Column("processed_at_utc", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "(status = 'failed') = (error_message IS NOT NULL)",
            name=op.f("ck_bulk_collection_results_failed"),
        ),
        sa.CheckConstraint(
            "(status = 'pending') = (processed_at_utc IS NULL)",
            name=op.f("ck_bulk_collection_results_pending"),
        ),
        sa.CheckConstraint(
            "(status = 'success') = (new_commits_count IS NOT NULL)",
            name=op.f("ck_bulk_collection_results_success"),
        ),
        sa.CheckConstraint(
            "status IN ('pending', 'success', 'failed')",
            name=op.f("ck_bulk_collection_results_status"),
        ),
        sa.ForeignKeyConstraint(
            ["run_id"],
            ["bulk_collection_runs.run_id"],
            name=op.f("fk_bulk_collection_results_run_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "run_id", "project_id", "branch_name", name=op.f("pk_bulk_collection_results")
        ),
    )
    op.create_index(
        "idx_bulk_results_run_status", "bulk_collection_results", ["run_id", "status"], unique=False
    )
    op.create_index(
        "idx_bulk_results_target_status",
        "bulk_collection_results",
        ["project_id", "branch_name", "status"],
        unique=False,
    )


def make_commit_targets() -> None:
    op.create_table(
        "commit_targets",
        sa.Column("project_id", Id(), nullable=False),
        sa.Column("branch_name", sa.Text(), nullable=False),
        sa.Column("is_followed", sa.Boolean(), nullable=False),
        sa.Column("is_default", sa.Boolean(), nullable=False),
        sa.Column("head_sha", sa.Text(), nullable=True),
        sa.Column("collected_at_utc", sa.Text(), nullable=True),
        sa.Column("range_old", sa.Text(), nullable=True),
        sa.Column("range_new", sa.Text(), nullable=True),
        sa.Column("range_since_utc", sa.Text(), nullable=True),
        sa.Column("range_mark", sa.Text(), nullable=True),
        sa.Column("range_run_id", sa.Text(), nullable=True),
        sa.Column("range_commits", sa.Integer(), server_default="0", nullable=False),
        sa.CheckConstraint(
            "range_new IS NOT NULL OR (range_old IS NULL AND range_since_utc IS NULL AND range_mark IS NULL)",
            name=op.f("ck_commit_targets_range"),
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.project_id"], name=op.f("fk_commit_targets_project_id")
        ),
        sa.PrimaryKeyConstraint("project_id", "branch_name", name=op.f("pk_commit_targets")),
    )


def make_commit_totals() -> None:
    op.create_table(
        "commit_totals",
        sa.Column("project_id", Id(), nullable=False),
        sa.Column("month", sa.Text(), nullable=False),
        sa.Column("author_email", sa.Text(), nullable=False),
        sa.Column("author_name", sa.Text(), nullable=False),
        sa.Column("commits", Id(), nullable=False),
        sa.Column("additions", Id(), nullable=False),
        sa.Column("deletions", Id(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.project_id"], name=op.f("fk_commit_totals_project_id")
        ),
        sa.PrimaryKeyConstraint(
            "project_id", "month", "author_email", "author_name", name=op.f("pk_commit_totals")
        ),
        sqlite_with_rowid=False,
    )


def make_commits() -> None:
    op.create_table(
        "commits",
        sa.Column("project_id", Id(), nullable=False),
        sa.Column("branch_name", sa.Text(), nullable=False),
        sa.Column("sha", sa.Text(), nullable=False),
        sa.Column("author_name", sa.Text(), nullable=False),
        sa.Column("author_email", sa.Text(), nullable=False),
        sa.Column("committed_date_utc", sa.Text(), nullable=False),
        sa.Column("additions", sa.Integer(), nullable=False),
        sa.Column("deletions", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.project_id"], name=op.f("fk_commits_project_id")
        ),
        sa.UniqueConstraint(
            "project_id", "branch_name", "sha", name=op.f("uq_commits_project_id_branch_name_sha")
        ),
    )
    op.create_index(
        "idx_commits_target_committed",
        "commits",
        ["project_id", "branch_name", "committed_date_utc"],
        unique=False,
    )


def make_bulk_collection_notes() -> None:
    op.create_table(
        "bulk_collection_notes",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("project_id", Id(), autoincrement=False, nullable=False),
        sa.Column("branch_name", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("sentence", sa.Text(), nullable=False),
        sa.CheckConstraint(
            "kind IN ('force_push', 'history_replaced', 'head_unknown', 'branch_gone', 'empty_repository', 'project_renamed', 'default_moved')",
            name=op.f("ck_bulk_collection_notes_kind"),
        ),
        sa.ForeignKeyConstraint(
            ["run_id", "project_id", "branch_name"],
            [
                "bulk_collection_results.run_id",
                "bulk_collection_results.project_id",
                "bulk_collection_results.branch_name",
            ],
            name=op.f("fk_bulk_collection_notes_run_id_project_id_branch_name"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "run_id", "project_id", "branch_name", "kind", name=op.f("pk_bulk_collection_notes")
        ),
    )
