"""The tables of access: users, tokens, sessions, sign-in attempts, the API's requests and keys, saved views.

users             people, with role and password hash
api_tokens        credentials of programs; a revoked one keeps its row and frees its name
user_sessions     browsers that signed in; an ended one is deleted
sign_in_attempts  how often a name or an address was tried in its window, by the hash of either
setup_codes       one row at most: the code by which the first admin is created
owner_links       links by which the owner of a server without users signs in; an opened one is a session
api_requests      requests that named an Idempotency-Key
signing_keys      secrets that every process on this database signs with
saved_views       addresses of lists, with their filters, under a name of their owner

Secrets of people and programs are hashed.
"""

from sqlalchemy import (
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
)

from tsuzuki.model.access import Role
from tsuzuki.store.schema.tables import metadata, one_of, partial_index
from tsuzuki.store.sql.types import BigId, JsonText, KeyText, PlainText, UtcTime

HASH_LENGTH = 64
"""SHA-256 in hexadecimal."""


def _is_hash(column: str) -> CheckConstraint:
    return CheckConstraint(f"length({column}) = {HASH_LENGTH}", name=column)


users = Table(
    "tsuzuki_users",
    metadata,
    Column("id", BigId, primary_key=True, autoincrement=True),
    Column("name", KeyText, nullable=False),
    Column("role", Text, nullable=False),
    Column("password_hash", Text, nullable=False),
    Column("password_changed_at", UtcTime, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("disabled_at", UtcTime),
    Column("last_sign_in_at", UtcTime),
    UniqueConstraint("name"),
    one_of("role", Role),
    CheckConstraint("length(name) BETWEEN 1 AND 100 AND name = lower(name)", name="name"),
    CheckConstraint("length(password_hash) > 0", name="password_hash"),
    sqlite_autoincrement=True,
)

api_tokens = Table(
    "tsuzuki_api_tokens",
    metadata,
    Column("id", KeyText, primary_key=True),
    Column("name", KeyText, nullable=False),
    Column("role", Text, nullable=False),
    # NULL: everything that the role may.
    Column("scopes", JsonText),
    Column("secret_hash", Text, nullable=False),
    # NULL: made on the command line, and belongs to no user.
    Column("user_id", BigId, ForeignKey("tsuzuki_users.id", ondelete="CASCADE")),
    Column("created_at", UtcTime, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("expires_at", UtcTime, nullable=False),
    Column("last_used_at", UtcTime),
    Column("revoked_at", UtcTime),
    Column("revoked_by", Text),
    # The token that it was made with, of the same user, and is revoked with. NULL: made by a person.
    Column("parent_id", KeyText),
    one_of("role", Role),
    CheckConstraint("length(name) BETWEEN 1 AND 100", name="name"),
    _is_hash("secret_hash"),
    CheckConstraint("expires_at > created_at", name="expires_at"),
    CheckConstraint("(revoked_at IS NULL) = (revoked_by IS NULL)", name="revoked"),
)
partial_index(
    "tsuzuki_uq_api_tokens_name", api_tokens.c.name, unique=True, where="revoked_at IS NULL"
)
Index("tsuzuki_ix_api_tokens_user_id", api_tokens.c.user_id)
Index("tsuzuki_ix_api_tokens_parent_id", api_tokens.c.parent_id)

user_sessions = Table(
    "tsuzuki_user_sessions",
    metadata,
    Column("id", BigId, primary_key=True, autoincrement=True),
    Column("secret_hash", Text, nullable=False),
    Column("user_id", BigId, ForeignKey("tsuzuki_users.id", ondelete="CASCADE"), nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("last_seen_at", UtcTime, nullable=False),
    Column("expires_at", UtcTime, nullable=False),
    Column("address", PlainText),
    Column("user_agent", PlainText),
    UniqueConstraint("secret_hash"),
    _is_hash("secret_hash"),
    CheckConstraint("expires_at > created_at", name="expires_at"),
    sqlite_autoincrement=True,
)
Index("tsuzuki_ix_user_sessions_user_id", user_sessions.c.user_id)

sign_in_attempts = Table(
    "tsuzuki_sign_in_attempts",
    metadata,
    # A hash: a password that was typed as a name is not to be read here.
    Column("key_hash", Text, primary_key=True),
    Column("attempts", Integer, nullable=False),
    Column("window_ends_at", UtcTime, nullable=False),
    _is_hash("key_hash"),
    CheckConstraint("attempts >= 1", name="attempts"),
)
Index("tsuzuki_ix_sign_in_attempts_window_ends_at", sign_in_attempts.c.window_ends_at)

setup_codes = Table(
    "tsuzuki_setup_codes",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("code_hash", Text, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("expires_at", UtcTime, nullable=False),
    Column("used_at", UtcTime),
    CheckConstraint("id = 1", name="single"),
    _is_hash("code_hash"),
)

owner_links = Table(
    "tsuzuki_owner_links",
    metadata,
    Column("id", BigId, primary_key=True, autoincrement=True),
    Column("link_hash", Text, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("created_by", Text, nullable=False),
    # Of the link until it is opened, then of its session.
    Column("expires_at", UtcTime, nullable=False),
    Column("opened_at", UtcTime),
    Column("session_hash", Text),
    UniqueConstraint("link_hash"),
    UniqueConstraint("session_hash"),
    _is_hash("link_hash"),
    _is_hash("session_hash"),
    CheckConstraint("(opened_at IS NULL) = (session_hash IS NULL)", name="opened"),
    sqlite_autoincrement=True,
)

# Requests to the API that named an Idempotency-Key. `request_id` stays the same if a claim is taken over.
api_requests = Table(
    "tsuzuki_api_requests",
    metadata,
    Column("actor", Text, primary_key=True),
    Column("idempotency_key", KeyText, primary_key=True),
    Column("request_id", Text, nullable=False),
    Column("fingerprint", Text, nullable=False),
    Column("claim", Text, nullable=False),
    Column("claimed_until", UtcTime, nullable=False),
    Column("expires_at", UtcTime, nullable=False),
    Column("status", Integer),
    Column("headers", JsonText),
    Column("body", Text),
    CheckConstraint(
        "(status IS NULL) = (headers IS NULL) AND (status IS NULL) = (body IS NULL)", name="answer"
    ),
)
Index("tsuzuki_ix_api_requests_expires_at", api_requests.c.expires_at)

# Secrets that every process on this database signs with, by what they sign.
signing_keys = Table(
    "tsuzuki_signing_keys",
    metadata,
    Column("name", Text, primary_key=True),
    Column("secret", Text, nullable=False),
    Column("created_at", UtcTime, nullable=False),
)

saved_views = Table(
    "tsuzuki_saved_views",
    metadata,
    Column("owner", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("address", Text, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    CheckConstraint("address LIKE '/%'", name="address"),
)
