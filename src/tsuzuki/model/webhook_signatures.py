"""Whether a webhook's request comes from its sender: four ways to prove it, over the bytes of the body as they came.

    standard  Standard Webhooks: an HMAC of id, time and body; several signatures, of which one must be right
    github    an HMAC of the body in `X-Hub-Signature-256`; Gitea and Forgejo send it too
    gitlab    the secret itself in `X-Gitlab-Token`
    header    the secret itself in a header that the configuration names

Every comparison takes the same time for a right and a wrong value. Any of the secrets may be the right one, so that a
sender can change over to a new secret while the old one still holds.
"""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from tsuzuki.model.errors import ConfigurationError, NotAuthenticated, UsageError

TOLERANCE_SECONDS = 300
"""How far the time that a sender signed may be from ours."""

SECRET_HEADER = "X-Webhook-Secret"  # noqa: S105 -- the name of a header
STANDARD_SECRET_PREFIX = "whsec_"  # noqa: S105 -- the public part
_SIGNATURES_MAX = 20
_ID = re.compile(r"[!-~]{1,200}")
_SECONDS = re.compile(r"[0-9]{1,12}")


class WebhookKind(StrEnum):
    """How a sender proves that a request is its own."""

    STANDARD = "standard"
    GITHUB = "github"
    GITLAB = "gitlab"
    HEADER = "header"


@dataclass(frozen=True, kw_only=True)
class WebhookDelivery:
    """What the headers of a request say that was proved: its id, the same if it is sent again, and what the sender
    calls the event."""

    id: str | None
    event: str | None


class Headers:
    """The headers of a request by name in any case."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._values = {name.lower(): value for name, value in headers.items()}

    def first(self, *names: str) -> str | None:
        """The value of the first of these that is there and not empty."""
        return next((self._values[name.lower()] for name in names if self._value(name)), None)

    def _value(self, name: str) -> str | None:
        return self._values.get(name.lower())


def verify(
    kind: WebhookKind,
    *,
    secrets: Sequence[str],
    headers: Mapping[str, str],
    body: bytes,
    now: datetime,
    secret_header: str = SECRET_HEADER,
) -> WebhookDelivery:
    """Raises `NotAuthenticated` with the code `signature_missing`, `signature_wrong` or `signature_stale`,
    `UsageError` for an id that is none, and `ConfigurationError` for a secret that is none."""
    if not secrets or not all(secrets):
        raise ConfigurationError("the webhook has no secret", code="webhook_secret")
    given = Headers(headers)
    match kind:
        case WebhookKind.STANDARD:
            return _verify_standard(secrets, given, body, now)
        case WebhookKind.GITHUB:
            return _verify_github(secrets, given, body)
        case WebhookKind.GITLAB:
            _verify_shared(secrets, given, "X-Gitlab-Token")
            return _delivery(given.first("Idempotency-Key"), given.first("X-Gitlab-Event"))
        case WebhookKind.HEADER:
            _verify_shared(secrets, given, secret_header)
            return _delivery(given.first("Idempotency-Key"), None)


def check_headers(
    kind: WebhookKind,
    *,
    secrets: Sequence[str],
    headers: Mapping[str, str],
    secret_header: str = SECRET_HEADER,
) -> None:
    """What of it can be checked before the body is read: a secret, or that there is a signature. Raises as `verify`."""
    given = Headers(headers)
    match kind:
        case WebhookKind.STANDARD:
            for name in ("id", "timestamp", "signature"):
                _required(given, f"webhook-{name}", f"svix-{name}")
        case WebhookKind.GITHUB:
            _required(given, "X-Hub-Signature-256")
        case WebhookKind.GITLAB:
            _verify_shared(secrets, given, "X-Gitlab-Token")
        case WebhookKind.HEADER:
            _verify_shared(secrets, given, secret_header)


def _verify_standard(
    secrets: Sequence[str], headers: Headers, body: bytes, now: datetime
) -> WebhookDelivery:
    delivery_id = _required(headers, "webhook-id", "svix-id")
    at = _required(headers, "webhook-timestamp", "svix-timestamp")
    signatures = _required(headers, "webhook-signature", "svix-signature").split()
    signed = b".".join([_bytes(delivery_id), _bytes(at), body])
    expected = [
        base64.b64encode(hmac.digest(_standard_key(secret), signed, "sha256")) for secret in secrets
    ]
    given = [
        signature.removeprefix("v1,")
        for signature in signatures[:_SIGNATURES_MAX]
        if signature.startswith("v1,")
    ]
    if not _is_any_same(map(_bytes, given), expected):
        raise _refused("wrong webhook signature", "signature_wrong")
    # Only then: a time that was not signed says nothing.
    if not _SECONDS.fullmatch(at) or abs(now.timestamp() - int(at)) > TOLERANCE_SECONDS:
        raise _refused(
            "the webhook was signed too long ago, or a clock is wrong", "signature_stale"
        )
    return _delivery(delivery_id, None)


def _standard_key(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix(STANDARD_SECRET_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not key:
        raise ConfigurationError(
            "the secret of a webhook of kind standard must be whsec_ followed by base64",
            hint="Copy the whole secret from the sender.",
            code="webhook_secret",
        )
    return key


def _verify_github(secrets: Sequence[str], headers: Headers, body: bytes) -> WebhookDelivery:
    signature = _required(headers, "X-Hub-Signature-256")
    expected = [
        f"sha256={hmac.new(_bytes(secret), body, hashlib.sha256).hexdigest()}".encode()
        for secret in secrets
    ]
    if not _is_any_same([_bytes(signature)], expected):
        raise _refused("wrong webhook signature", "signature_wrong")
    return _delivery(headers.first("X-GitHub-Delivery"), headers.first("X-GitHub-Event"))


def _verify_shared(secrets: Sequence[str], headers: Headers, name: str) -> None:
    given = _required(headers, name)
    # By their hashes, which are of one length: a comparison of unequal lengths tells how long the secret is.
    if not _is_any_same([_digest(given)], [_digest(secret) for secret in secrets]):
        raise _refused("wrong webhook secret", "signature_wrong")


def _is_any_same(given: Iterable[bytes], expected: Sequence[bytes]) -> bool:
    """Whether any of these is any of those; all are compared in any case."""
    return True in [hmac.compare_digest(one, other) for one in given for other in expected]


def _digest(secret: str) -> bytes:
    return hashlib.sha256(_bytes(secret)).digest()


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _required(headers: Headers, *names: str) -> str:
    value = headers.first(*names)
    if value is None:
        raise _refused(f"the webhook request has no header {names[0]}", "signature_missing")
    return value


def _delivery(delivery_id: str | None, event: str | None) -> WebhookDelivery:
    if delivery_id is not None and not _ID.fullmatch(delivery_id):
        raise UsageError(
            "invalid webhook ID",
            hint="An ID has up to 200 letters, digits and punctuation marks, without spaces.",
            code="webhook_id",
        )
    return WebhookDelivery(id=delivery_id, event=event)


def _refused(message: str, code: str) -> NotAuthenticated:
    hint = "Compare the secret and kind of this webhook with those of the sender."
    return NotAuthenticated(message, hint=hint, code=code)
