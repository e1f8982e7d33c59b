"""API requests that are executed at most once, the API's signing key, and the ID of the installation."""

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from tsuzuki.model.errors import Conflict, UsageError
from tsuzuki.store import api_requests, signing_keys
from tsuzuki.store.sql.database import Database

EXPIRED_AT_ONCE = 20
IN_FLIGHT_RETRY_SECONDS = 1.0
INSTALLATION_LENGTH = 12


@dataclass(frozen=True, kw_only=True)
class Claim:
    """The right to carry a request out. `request_id` is the same whenever this request is made again."""

    actor: str
    key: str
    request_id: str
    token: str


@dataclass(frozen=True, kw_only=True)
class StoredAnswer:
    """What a request was answered with."""

    status: int
    headers: Mapping[str, str]
    body: str


class ApiRequests:
    def __init__(self, *, database: Database) -> None:
        self._database = database

    def claim(self, *, actor: str, key: str, fingerprint: str) -> Claim | StoredAnswer:
        """The claim on a new request, or the answer of an earlier one with the same key. Raises `UsageError` if
        that was another request, and `Conflict` while it is carried out."""
        claim = Claim(
            actor=actor, key=key, request_id=secrets.token_hex(16), token=secrets.token_hex(16)
        )
        with self._database.write() as connection:
            api_requests.delete_expired(connection, limit=EXPIRED_AT_ONCE)
            if api_requests.claim(
                connection,
                actor=actor,
                key=key,
                request_id=claim.request_id,
                fingerprint=fingerprint,
                claim=claim.token,
            ):
                return claim
            earlier = api_requests.get(connection, actor=actor, key=key)
            if earlier is None:
                raise _in_flight(key)
            if earlier.fingerprint != fingerprint:
                raise UsageError(
                    f"the Idempotency-Key {key!r} was already used for a different request",
                    hint="Use a new key for each operation; keys are kept for 24 hours.",
                    code="idempotency_key_used",
                )
            if earlier.status is not None:
                return StoredAnswer(
                    status=earlier.status, headers=earlier.headers or {}, body=earlier.body or ""
                )
            if earlier.is_claimed or not api_requests.take_over(
                connection, actor=actor, key=key, claim=earlier.claim, new_claim=claim.token
            ):
                raise _in_flight(key)
            return Claim(actor=actor, key=key, request_id=earlier.request_id, token=claim.token)

    def answer(self, claim: Claim, answer: StoredAnswer) -> None:
        with self._database.write() as connection:
            api_requests.answer(
                connection,
                actor=claim.actor,
                key=claim.key,
                claim=claim.token,
                status=answer.status,
                headers=answer.headers,
                body=answer.body,
            )

    def release(self, claim: Claim) -> None:
        """The request did nothing: the key may be used again."""
        with self._database.write() as connection:
            api_requests.release(connection, actor=claim.actor, key=claim.key, claim=claim.token)

    def lapse(self, claim: Claim) -> None:
        """Whether the request was carried out is not known: it may be made again at once, under the same id."""
        with self._database.write() as connection:
            api_requests.lapse(connection, actor=claim.actor, key=claim.key, claim=claim.token)

    @cached_property
    def cursor_key(self) -> bytes:
        """What cursors are signed with: the same in all processes on this database."""
        name = "cursor"
        with self._database.read() as connection:
            stored = signing_keys.get(connection, name)
        if stored is None:
            with self._database.write() as connection:
                signing_keys.add(connection, name=name, secret=secrets.token_hex(32))
                stored = signing_keys.get(connection, name)
        if stored is None:
            raise RuntimeError("the signing key was deleted at this moment")
        return bytes.fromhex(stored)

    @property
    def installation(self) -> str:
        """What tells this database from others, and may be public: the same in all processes on it."""
        return hashlib.sha256(self.cursor_key + b"installation").hexdigest()[:INSTALLATION_LENGTH]


def _in_flight(key: str) -> Conflict:
    return Conflict(
        f"a request with the Idempotency-Key {key!r} is still in progress",
        hint="Retry in a moment with the same key.",
        retry_after_seconds=IN_FLIGHT_RETRY_SECONDS,
        code="request_in_flight",
    )
