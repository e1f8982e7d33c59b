"""Users, tokens, sessions, attempts to sign in and the setup code: new tables only, which a process of the version
before does not name.
"""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None
expands = True

ROLES = "role IN ('viewer', 'operator', 'admin')"


def Id() -> sa.BigInteger:
    return sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def Time() -> sa.DateTime:
    return sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")


def upgrade() -> None:
    make_users()
    make_api_tokens()
    make_user_sessions()
    make_sign_in_attempts()
    make_setup_codes()


def make_users() -> None:
    op.create_table(
        "users",
        sa.Column("id", Id(), autoincrement=True, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("password_hash", sa.Text(), nullable=False),
        sa.Column("password_changed_at", Time(), nullable=False),
        sa.Column("created_at", Time(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("disabled_at", Time(), nullable=True),
        sa.Column("last_sign_in_at", Time(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_users")),
        sa.UniqueConstraint("name", name=op.f("uq_users_name")),
        sa.CheckConstraint(ROLES, name=op.f("ck_users_role")),
        sa.CheckConstraint(
            "length(name) BETWEEN 1 AND 100 AND name = lower(name)", name=op.f("ck_users_name")
        ),
        sa.CheckConstraint("length(password_hash) > 0", name=op.f("ck_users_password_hash")),
        sqlite_autoincrement=True,
    )


def make_api_tokens() -> None:
    op.create_table(
        "api_tokens",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("scopes", sa.Text(), nullable=True),
        sa.Column("secret_hash", sa.Text(), nullable=False),
        sa.Column("user_id", Id(), nullable=True),
        sa.Column("created_at", Time(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("expires_at", Time(), nullable=False),
        sa.Column("last_used_at", Time(), nullable=True),
        sa.Column("revoked_at", Time(), nullable=True),
        sa.Column("revoked_by", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_tokens")),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_api_tokens_user_id"), ondelete="CASCADE"
        ),
        sa.CheckConstraint(ROLES, name=op.f("ck_api_tokens_role")),
        sa.CheckConstraint("length(name) BETWEEN 1 AND 100", name=op.f("ck_api_tokens_name")),
        sa.CheckConstraint("length(secret_hash) = 64", name=op.f("ck_api_tokens_secret_hash")),
        sa.CheckConstraint("expires_at > created_at", name=op.f("ck_api_tokens_expires_at")),
        sa.CheckConstraint(
            "(revoked_at IS NULL) = (revoked_by IS NULL)", name=op.f("ck_api_tokens_revoked")
        ),
    )
    live = sa.text("revoked_at IS NULL")
    op.create_index(
        "uq_api_tokens_name",
        "api_tokens",
        ["name"],
        unique=True,
        sqlite_where=live,
        postgresql_where=live,
    )
    op.create_index("ix_api_tokens_user_id", "api_tokens", ["user_id"])


def make_user_sessions() -> None:
    op.create_table(
        "user_sessions",
        sa.Column("id", Id(), autoincrement=True, nullable=False),
        sa.Column("secret_hash", sa.Text(), nullable=False),
        sa.Column("user_id", Id(), nullable=False),
        sa.Column("created_at", Time(), nullable=False),
        sa.Column("last_seen_at", Time(), nullable=False),
        sa.Column("expires_at", Time(), nullable=False),
        sa.Column("address", sa.Text(), nullable=True),
        sa.Column("user_agent", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_user_sessions")),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_user_sessions_user_id"), ondelete="CASCADE"
        ),
        sa.UniqueConstraint("secret_hash", name=op.f("uq_user_sessions_secret_hash")),
        sa.CheckConstraint("length(secret_hash) = 64", name=op.f("ck_user_sessions_secret_hash")),
        sa.CheckConstraint("expires_at > created_at", name=op.f("ck_user_sessions_expires_at")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_user_sessions_user_id", "user_sessions", ["user_id"])


def make_sign_in_attempts() -> None:
    op.create_table(
        "sign_in_attempts",
        sa.Column("key_hash", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("window_ends_at", Time(), nullable=False),
        sa.PrimaryKeyConstraint("key_hash", name=op.f("pk_sign_in_attempts")),
        sa.CheckConstraint("length(key_hash) = 64", name=op.f("ck_sign_in_attempts_key_hash")),
        sa.CheckConstraint("attempts >= 1", name=op.f("ck_sign_in_attempts_attempts")),
    )
    op.create_index("ix_sign_in_attempts_window_ends_at", "sign_in_attempts", ["window_ends_at"])


def make_setup_codes() -> None:
    op.create_table(
        "setup_codes",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("code_hash", sa.Text(), nullable=False),
        sa.Column("created_at", Time(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("expires_at", Time(), nullable=False),
        sa.Column("used_at", Time(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_setup_codes")),
        sa.CheckConstraint("id = 1", name=op.f("ck_setup_codes_single")),
        sa.CheckConstraint("length(code_hash) = 64", name=op.f("ck_setup_codes_code_hash")),
    )


def downgrade() -> None:
    raise RuntimeError("migrations go forward only; restore a backup instead")
