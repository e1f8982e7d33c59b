"""The id of a collection is a UUID of version 4; notes on dates that are not valid.

The CHECK holds for what is written from now on. Rows that have another id stay as they are: PostgreSQL
does not validate the constraint then, and in an SQLite file only the text of the table changes.
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

BEFORE = "length(run_id) = 36"
IS_UUID4 = (
    "run_id LIKE '________-____-4___-____-____________'"
    " AND substr(run_id, 20, 1) IN ('8', '9', 'a', 'b')"
    " AND length(replace(run_id, '-', '')) = 32"
    " AND ltrim(run_id, '0123456789abcdef-') = ''"
)
TABLE = "bulk_collection_runs"
NAME = "ck_bulk_collection_runs_run_id"


def Id() -> sa.BigInteger:
    return sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    make_commit_date_notes()
    if op.get_bind().dialect.name == "sqlite":
        check_in_sqlite()
    else:
        check_in_postgresql()


def check_in_sqlite() -> None:
    """Change the CHECK where it stands: to rebuild the table would delete what refers to it."""
    connection = op.get_bind()
    version = connection.exec_driver_sql("PRAGMA schema_version").scalar_one()
    connection.exec_driver_sql("PRAGMA writable_schema = ON")
    connection.exec_driver_sql(
        "UPDATE sqlite_master SET sql = replace(sql, ?, ?) WHERE type = 'table' AND name = ?",
        (BEFORE, IS_UUID4, TABLE),
    )
    connection.exec_driver_sql(f"PRAGMA schema_version = {version + 1}")
    connection.exec_driver_sql("PRAGMA writable_schema = RESET")


def check_in_postgresql() -> None:
    op.execute(f"ALTER TABLE {TABLE} DROP CONSTRAINT {NAME}")
    op.execute(f"ALTER TABLE {TABLE} ADD CONSTRAINT {NAME} CHECK ({IS_UUID4}) NOT VALID")
    others = sa.text(f"SELECT count(*) FROM {TABLE} WHERE NOT ({IS_UUID4})")
    if op.get_bind().execute(others).scalar_one() == 0:
        op.execute(f"ALTER TABLE {TABLE} VALIDATE CONSTRAINT {NAME}")


def make_commit_date_notes() -> None:
    op.create_table(
        "commit_date_notes",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("project_id", Id(), autoincrement=False, nullable=False),
        sa.Column("branch_name", sa.Text(), nullable=False),
        sa.Column("sha", sa.Text(), nullable=False),
        sa.Column("sentence", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id", "project_id", "branch_name"],
            [
                "bulk_collection_results.run_id",
                "bulk_collection_results.project_id",
                "bulk_collection_results.branch_name",
            ],
            name=op.f("fk_commit_date_notes_run_id_project_id_branch_name"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "run_id", "project_id", "branch_name", "sha", name=op.f("pk_commit_date_notes")
        ),
    )
