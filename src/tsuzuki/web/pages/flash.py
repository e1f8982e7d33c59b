"""A message for the next page, after a form was posted and the browser redirected.

It travels in a cookie that is signed, so that no other site and no person can put words into our pages, and holds
the message and its values only. It is deleted when it is shown.
"""

import base64
import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import HTTPConnection
from starlette.responses import Response

from tsuzuki.model import jsontext

COOKIE = "__Host-tsuzuki-flash"
KEPT_SECONDS = 60
LENGTH_MAX = 2000
SIGNATURE_BYTES = 16


@dataclass(frozen=True, kw_only=True)
class Flash:
    """`text` is an English message of the catalogues, with places for `values`."""

    text: str
    values: dict[str, Any] = field(default_factory=dict)


def keep_flash(response: Response, flash: Flash, key: bytes) -> None:
    payload = jsontext.encode([flash.text, flash.values]).encode("utf-8")
    value = base64.urlsafe_b64encode(_sign(key, payload) + payload).decode("ascii")
    response.set_cookie(
        COOKIE, value, max_age=KEPT_SECONDS, secure=True, httponly=True, samesite="lax"
    )


def flash_of(connection: HTTPConnection, key: Callable[[], bytes]) -> Flash | None:
    """None without one, and for one that is not ours. The key, which the database has, is asked for if needed: a
    page that says that the database cannot be reached needs none."""
    value = connection.cookies.get(COOKIE)
    if value is None or len(value) > LENGTH_MAX:
        return None
    try:
        raw = base64.urlsafe_b64decode(value.encode("ascii"))
    except ValueError:
        return None
    signature, payload = raw[:SIGNATURE_BYTES], raw[SIGNATURE_BYTES:]
    if not hmac.compare_digest(signature, _sign(key(), payload)):
        return None
    text, values = jsontext.decode(payload.decode("utf-8"))
    return Flash(text=text, values=values)


def forget_flash(response: Response) -> None:
    response.delete_cookie(COOKIE, secure=True, httponly=True, samesite="lax")


def _sign(key: bytes, payload: bytes) -> bytes:
    bound = hashlib.sha256(key + b"flash").digest()
    return hmac.digest(bound, payload, "sha256")[:SIGNATURE_BYTES]
