"""Requests with an Idempotency-Key: claimed by one process, answered once, kept for a day.

A claim ends by itself, so that the request of a process that died can be made again. The request id stays the
same then: what was stored under it is found, not stored twice.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Integer, Text, bindparam, delete, select, update
from sqlalchemy.engine import Dialect

from tsuzuki.store.schema.access_tables import api_requests
from tsuzuki.store.sql.clock import db_now
from tsuzuki.store.sql.dialect import insert_into
from tsuzuki.store.sql.prepared import execute, parameters_for
from tsuzuki.store.sql.types import KeyText

CLAIM_SECONDS = 120.0
"""Longer than any request of ours takes, waiting included."""

KEPT_SECONDS = 86_400.0


@dataclass(frozen=True, kw_only=True)
class ApiRequest:
    """A stored request. Without a `status` it has no answer yet; `is_claimed` while a process works on it."""

    request_id: str
    fingerprint: str
    claim: str
    is_claimed: bool
    status: int | None
    headers: Mapping[str, str] | None
    body: str | None


_NAMED = (
    api_requests.c.actor == bindparam("of_actor", type_=Text()),
    api_requests.c.idempotency_key == bindparam("of_key", type_=KeyText()),
)
_GIVEN = ("actor", "idempotency_key", "request_id", "fingerprint", "claim")


@lru_cache
def _claim(dialect: Dialect) -> Any:
    statement = insert_into(dialect, api_requests).values(
        **parameters_for(api_requests, *_GIVEN),
        claimed_until=db_now(CLAIM_SECONDS),
        expires_at=db_now(KEPT_SECONDS),
    )
    renewed = (
        "request_id",
        "fingerprint",
        "claim",
        "claimed_until",
        "expires_at",
        "status",
        "headers",
        "body",
    )
    return statement.on_conflict_do_update(
        index_elements=[api_requests.c.actor, api_requests.c.idempotency_key],
        set_={name: statement.excluded[name] for name in renewed},
        where=api_requests.c.expires_at <= db_now(),
    ).returning(api_requests.c.request_id)


def claim(
    connection: Connection, *, actor: str, key: str, request_id: str, fingerprint: str, claim: str
) -> bool:
    """Claim a key that was not used in the last day. False if it was."""
    values = {
        "actor": actor,
        "idempotency_key": key,
        "request_id": request_id,
        "fingerprint": fingerprint,
        "claim": claim,
    }
    return execute(connection, _claim(connection.dialect), values).scalar_one_or_none() is not None


_GET = select(
    api_requests.c.request_id,
    api_requests.c.fingerprint,
    api_requests.c.claim,
    (api_requests.c.claimed_until > db_now()).label("is_claimed"),
    api_requests.c.status,
    api_requests.c.headers,
    api_requests.c.body,
).where(*_NAMED)


def get(connection: Connection, *, actor: str, key: str) -> ApiRequest | None:
    row = execute(connection, _GET, {"of_actor": actor, "of_key": key}).mapping_or_none()
    return None if row is None else ApiRequest(**{**row, "is_claimed": bool(row["is_claimed"])})


_OURS = (*_NAMED, api_requests.c.claim == bindparam("of_claim", type_=Text()))
_UNANSWERED = (*_OURS, api_requests.c.status.is_(None))
_TAKE_OVER = (
    update(api_requests)
    .where(*_UNANSWERED, api_requests.c.claimed_until <= db_now())
    .values(claim=bindparam("new_claim", type_=Text()), claimed_until=db_now(CLAIM_SECONDS))
)
_ANSWER = (
    update(api_requests)
    .where(*_UNANSWERED)
    .values(**parameters_for(api_requests, "status", "headers", "body"))
)
_RELEASE = delete(api_requests).where(*_UNANSWERED)


def take_over(connection: Connection, *, actor: str, key: str, claim: str, new_claim: str) -> bool:
    """Take the claim of a process that did not answer in time. False if another did so first."""
    values = {"of_actor": actor, "of_key": key, "of_claim": claim, "new_claim": new_claim}
    return execute(connection, _TAKE_OVER, values).rowcount == 1


def answer(
    connection: Connection,
    *,
    actor: str,
    key: str,
    claim: str,
    status: int,
    headers: Mapping[str, str],
    body: str,
) -> bool:
    """Store the answer, if the claim is still ours."""
    values = {
        "of_actor": actor,
        "of_key": key,
        "of_claim": claim,
        "status": status,
        "headers": dict(headers),
        "body": body,
    }
    return execute(connection, _ANSWER, values).rowcount == 1


def release(connection: Connection, *, actor: str, key: str, claim: str) -> bool:
    """Forget a request that did nothing: it may be made again."""
    values = {"of_actor": actor, "of_key": key, "of_claim": claim}
    return execute(connection, _RELEASE, values).rowcount == 1


_LAPSE = update(api_requests).where(*_UNANSWERED).values(claimed_until=db_now())


def lapse(connection: Connection, *, actor: str, key: str, claim: str) -> bool:
    """End a claim without an answer. The request id stays."""
    values = {"of_actor": actor, "of_key": key, "of_claim": claim}
    return execute(connection, _LAPSE, values).rowcount == 1


_EXPIRED = (
    select(api_requests.c.actor, api_requests.c.idempotency_key)
    .where(api_requests.c.expires_at <= db_now())
    .order_by(api_requests.c.expires_at)
    .limit(bindparam("limit", type_=Integer()))
)
_DELETE_EXPIRED = delete(api_requests).where(*_NAMED, api_requests.c.expires_at <= db_now())


def delete_expired(connection: Connection, *, limit: int) -> int:
    """Delete requests that are older than a day, a few at a time."""
    expired = execute(connection, _EXPIRED, {"limit": limit}).all()
    for actor, key in expired:
        execute(connection, _DELETE_EXPIRED, {"of_actor": actor, "of_key": key})
    return len(expired)
