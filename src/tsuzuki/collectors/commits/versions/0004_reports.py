"""What reports read: authors, counts by day and month, mailmaps.

The counts of what is stored already are added up by the first report, not here: a migration must not take
as long as a history is.
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def Id() -> sa.BigInteger:
    return sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def project(name: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["project_id"], ["projects.project_id"], name=op.f(name))


def sums() -> list[sa.Column[int]]:
    return [sa.Column(name, Id(), nullable=False) for name in ("commits", "additions", "deletions")]


def upgrade() -> None:
    op.create_table(
        "commit_authors",
        sa.Column("author_id", Id(), autoincrement=True, nullable=False),
        sa.Column("project_id", Id(), nullable=False),
        sa.Column("author_email", sa.Text(), nullable=False),
        sa.Column("author_name", sa.Text(), nullable=False),
        project("fk_commit_authors_project_id"),
        sa.PrimaryKeyConstraint("author_id", name=op.f("pk_commit_authors")),
        sa.UniqueConstraint(
            "project_id",
            "author_email",
            "author_name",
            name=op.f("uq_commit_authors_project_id_author_email_author_name"),
        ),
    )
    op.create_table(
        "commit_rollups",
        sa.Column("rollup_id", Id(), autoincrement=True, nullable=False),
        sa.Column("project_id", Id(), nullable=False),
        sa.Column("branch_name", sa.Text(), nullable=False),
        sa.Column("commits", Id(), nullable=False),
        project("fk_commit_rollups_project_id"),
        sa.PrimaryKeyConstraint("rollup_id", name=op.f("pk_commit_rollups")),
        sa.UniqueConstraint(
            "project_id", "branch_name", name=op.f("uq_commit_rollups_project_id_branch_name")
        ),
    )
    make_counts()
    op.create_table(
        "commit_mailmaps",
        sa.Column("project_id", Id(), nullable=False),
        sa.Column("head_sha", sa.Text(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        project("fk_commit_mailmaps_project_id"),
        sa.PrimaryKeyConstraint("project_id", name=op.f("pk_commit_mailmaps")),
    )


def make_counts() -> None:
    for table, keys in (
        ("commit_months", ("rollup_id", "author_id", "merge_state", "month")),
        ("commit_days", ("day", "author_id", "merge_state")),
    ):
        kinds = {name: Id() if name.endswith("_id") else sa.Integer() for name in keys}
        op.create_table(
            table,
            *(sa.Column(k, kind, autoincrement=False, nullable=False) for k, kind in kinds.items()),
            *sums(),
            sa.ForeignKeyConstraint(
                ["author_id"], ["commit_authors.author_id"], name=op.f(f"fk_{table}_author_id")
            ),
            sa.PrimaryKeyConstraint(*keys, name=op.f(f"pk_{table}")),
            sqlite_with_rowid=False,
        )
