"""A webhook: posts as signed JSON, by the rules of Standard Webhooks.

`webhook-id` is the post's key and the same however often it is sent, so a receiver can drop the second. It cannot
be asked what has arrived; only of a receiver that is declared idempotent is an unknown outcome sent again.
"""

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Collection, Iterator
from datetime import datetime, timedelta
from urllib.parse import parse_qsl, urlsplit

from tsuzuki.collectors.feeds.channels.protocol import (
    AccountStopped,
    LookUpImpossible,
    OutcomeUnknown,
    Outgoing,
    OwnPost,
    PostLimits,
    PostRefused,
    Sent,
)
from tsuzuki.model.clock import Clock
from tsuzuki.outward.errors import NotConnected, RateLimitedUntil, SourceFailed
from tsuzuki.outward.http import HttpClient, HttpResponse
from tsuzuki.outward.retry_after import seconds_asked

SECRET_PREFIX = "whsec_"  # noqa: S105 - the start of every secret of that form, not one
SECRET_CHARACTERS_MIN = 6
"""A shorter value, such as `1`, is no secret, and stands in many words."""

ANSWER_BYTES_MAX = 64 * 1024
PAUSE_SECONDS = 60.0
_HINT = "Check the account's `url` and `secret`, and the receiver."


class WebhookChannel:
    """One receiver. For one thread at a time."""

    can_look_up = False

    def __init__(
        self, *, url: str, secret: str, is_idempotent: bool, clock: Clock, seconds: float
    ) -> None:
        self.is_idempotent = is_idempotent
        self._clock = clock
        self._key = _signing_key(secret)
        parts = urlsplit(url)
        self._query = parts.query
        self._client = HttpClient(
            service="the webhook",
            base_url=parts._replace(query="", fragment="").geturl(),
            clock=clock,
            secrets=[secret, parts.query, *_values_of(parts.query)],
            answer_seconds=seconds,
            body_bytes_max=ANSWER_BYTES_MAX,
        )

    def read_limits(self) -> PostLimits:
        return PostLimits()

    def check_access(self) -> str:
        return "not checked: only a post would show whether it works"

    def send(self, post: Outgoing) -> Sent:
        body = _payload(post)
        timestamp = str(int(self._clock.now().timestamp()))
        signed = b".".join([post.key.encode(), timestamp.encode(), body])
        signature = hmac.new(self._key, signed, hashlib.sha256).digest()
        headers = {
            "content-type": "application/json",
            "webhook-id": post.key,
            "webhook-timestamp": timestamp,
            "webhook-signature": f"v1,{base64.b64encode(signature).decode()}",
        }
        try:
            answer = self._client.post(query=self._query, body=body, headers=headers)
        except NotConnected:
            raise  # surely not sent
        except SourceFailed as problem:
            # No answer, or more than is read: what it was cannot be told.
            raise OutcomeUnknown(problem.message) from None
        if 200 <= answer.status < 300:
            return Sent(remote_id=post.key)
        raise self._failure(answer)

    def look_up(self, post: Outgoing, *, others: Collection[str]) -> Sent | None:  # noqa: ARG002 - the protocol's
        raise LookUpImpossible("a webhook cannot be asked which posts have arrived")

    def own_posts(self, *, since: datetime) -> Iterator[OwnPost]:  # noqa: ARG002 - the protocol's
        raise LookUpImpossible("a webhook cannot be asked which posts have arrived")

    def close(self) -> None:
        self._client.close()

    def _failure(self, answer: HttpResponse) -> SourceFailed:
        said = answer.body[:300].decode("utf-8", "replace")
        sentence = f"the webhook answered {answer.status}{self._client.quoted(said)}"
        match answer.status:
            case 429:
                now = self._clock.now()
                asked = seconds_asked(answer.headers.get("retry-after"), now=now)
                pause = timedelta(seconds=PAUSE_SECONDS if asked is None else asked)
                return RateLimitedUntil(sentence, until=now + pause)
            case 401 | 403 | 410:
                return AccountStopped(sentence, hint=_HINT)
            case 408 | 425:
                return OutcomeUnknown(sentence)
            case status if 300 <= status < 400:
                return AccountStopped(f"{sentence}; redirects are not followed", hint=_HINT)
            case status if 400 <= status < 500:
                return PostRefused(sentence)
            case _:
                return OutcomeUnknown(sentence)


def _values_of(query: str) -> list[str]:
    """What may be a secret in a query, as it is written and as the receiver reads it."""
    written = [part.partition("=")[2] for part in query.split("&")]
    read = [value for _, value in parse_qsl(query)]
    return [value for value in {*written, *read} if len(value) >= SECRET_CHARACTERS_MIN]


def _payload(post: Outgoing) -> bytes:
    said = {
        "type": f"feed.{post.kind.value}",
        "timestamp": post.created_at.isoformat(),
        "data": {"id": post.key, **post.body.as_dict()},
    }
    return json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode()


def _signing_key(secret: str) -> bytes:
    """`whsec_` and base64, or any text as it is."""
    if not secret.startswith(SECRET_PREFIX):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except binascii.Error:
        return secret.encode()
