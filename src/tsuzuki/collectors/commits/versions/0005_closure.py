"""Up to which head a branch is known to have every parent, parents a source does not have, and a note on them.

What is stored was collected without that check: a branch has no `closed_sha` until its next collection has looked
through it once. A process of the version before leaves `closed_sha` behind, so what it stores is looked through too.
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

TABLE = "bulk_collection_notes"
NAME = "ck_bulk_collection_notes_kind"
BEFORE = "'project_renamed', 'default_moved')"
AFTER = "'project_renamed', 'default_moved', 'parents_absent')"
KINDS = f"kind IN ('force_push', 'history_replaced', 'head_unknown', 'branch_gone', 'empty_repository', {AFTER}"


def Id() -> sa.BigInteger:
    return sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.add_column("commit_targets", sa.Column("closed_sha", sa.Text(), nullable=True))
    op.create_table(
        "commit_absences",
        sa.Column("project_id", Id(), nullable=False),
        sa.Column("commit_sha", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.project_id"], name=op.f("fk_commit_absences_project_id")
        ),
        sa.PrimaryKeyConstraint("project_id", "commit_sha", name=op.f("pk_commit_absences")),
    )
    if op.get_bind().dialect.name == "sqlite":
        allow_kind_in_sqlite()
    else:
        op.execute(f"ALTER TABLE {TABLE} DROP CONSTRAINT {NAME}")
        op.execute(f"ALTER TABLE {TABLE} ADD CONSTRAINT {NAME} CHECK ({KINDS})")


def allow_kind_in_sqlite() -> None:
    """Change the CHECK where it stands, which spares copying the table."""
    connection = op.get_bind()
    version = connection.exec_driver_sql("PRAGMA schema_version").scalar_one()
    connection.exec_driver_sql("PRAGMA writable_schema = ON")
    connection.exec_driver_sql(
        "UPDATE sqlite_master SET sql = replace(sql, ?, ?) WHERE type = 'table' AND name = ?",
        (BEFORE, AFTER, TABLE),
    )
    connection.exec_driver_sql(f"PRAGMA schema_version = {version + 1}")
    connection.exec_driver_sql("PRAGMA writable_schema = RESET")
