"""Parents of commits, counts per path, and for which branches they are complete; all empty.

Commits that are stored have none of these yet: a branch without a row in `commit_completions` is completed by
its next collection. A process of the version before goes on as it did; what it stores is completed later.
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def Id() -> sa.BigInteger:
    return sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    make_commit_parents()
    make_commit_paths()
    make_commit_path_counts()
    make_commit_completions()


def make_commit_parents() -> None:
    op.create_table(
        "commit_parents",
        sa.Column("project_id", Id(), nullable=False),
        sa.Column("commit_sha", sa.Text(), nullable=False),
        sa.Column("parent_count", sa.Integer(), nullable=False),
        sa.Column("parents", sa.Text(), nullable=False),
        sa.CheckConstraint("parent_count >= 0", name=op.f("ck_commit_parents_parent_count")),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.project_id"], name=op.f("fk_commit_parents_project_id")
        ),
        sa.PrimaryKeyConstraint("project_id", "commit_sha", name=op.f("pk_commit_parents")),
        sqlite_with_rowid=False,
    )


def make_commit_paths() -> None:
    op.create_table(
        "commit_paths",
        sa.Column("path_id", Id(), autoincrement=True, nullable=False),
        sa.Column("project_id", Id(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.project_id"], name=op.f("fk_commit_paths_project_id")
        ),
        sa.PrimaryKeyConstraint("path_id", name=op.f("pk_commit_paths")),
        sa.UniqueConstraint("project_id", "path", name=op.f("uq_commit_paths_project_id_path")),
    )


def make_commit_path_counts() -> None:
    op.create_table(
        "commit_path_counts",
        sa.Column("project_id", Id(), autoincrement=False, nullable=False),
        sa.Column("commit_sha", sa.Text(), nullable=False),
        sa.Column("path_id", Id(), autoincrement=False, nullable=False),
        sa.Column("additions", sa.Integer(), nullable=False),
        sa.Column("deletions", sa.Integer(), nullable=False),
        sa.CheckConstraint(
            "additions >= 0 AND deletions >= 0", name=op.f("ck_commit_path_counts_counts")
        ),
        sa.PrimaryKeyConstraint(
            "project_id", "commit_sha", "path_id", name=op.f("pk_commit_path_counts")
        ),
        sqlite_with_rowid=False,
    )


def make_commit_completions() -> None:
    op.create_table(
        "commit_completions",
        sa.Column("project_id", Id(), autoincrement=False, nullable=False),
        sa.Column("branch_name", sa.Text(), nullable=False),
        sa.Column("head_sha", sa.Text(), nullable=True),
        sa.Column("range_old", sa.Text(), nullable=True),
        sa.Column("range_new", sa.Text(), nullable=True),
        sa.Column("range_mark", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "range_new IS NOT NULL OR (range_old IS NULL AND range_mark IS NULL)",
            name=op.f("ck_commit_completions_range"),
        ),
        sa.ForeignKeyConstraint(
            ["project_id", "branch_name"],
            ["commit_targets.project_id", "commit_targets.branch_name"],
            name=op.f("fk_commit_completions_project_id_branch_name"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("project_id", "branch_name", name=op.f("pk_commit_completions")),
    )
