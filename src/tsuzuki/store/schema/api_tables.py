"""The tables of the API: requests that are made at most once, and the keys that it signs with."""

from sqlalchemy import CheckConstraint, Column, Index, Integer, Table, Text

from tsuzuki.store.schema.tables import metadata
from tsuzuki.store.sql.types import JsonText, KeyText, UtcTime

# Requests to the API that named an Idempotency-Key. `request_id` stays the same if a claim is taken over.
api_requests = Table(
    "api_requests",
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
Index("ix_api_requests_expires_at", api_requests.c.expires_at)

# Secrets that every process on this database signs with, by what they sign.
signing_keys = Table(
    "signing_keys",
    metadata,
    Column("name", Text, primary_key=True),
    Column("secret", Text, nullable=False),
    Column("created_at", UtcTime, nullable=False),
)
