"""The HTTP session under Mastodon.py: no redirects, one deadline, a bounded body, and what the answer said.

The library would follow a redirect of a POST with a GET, wait for each single read anew, and keep the status and
the headers of an answer to itself. It makes an object of everything in an answer, which takes longer than the
exchange: of a new or changed status it is given what `mastodon` reads.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

import requests

from tsuzuki.model.clock import Clock
from tsuzuki.outward.retry_after import ASKED_MAX_SECONDS, seconds_asked

BODY_BYTES_MAX = 8 * 1024 * 1024
CHUNK_BYTES = 64 * 1024
PAUSE_SECONDS = 300.0
"""The length of Mastodon's own rate windows, for an answer that says none."""

STATUS_FIELDS_READ = ("id", "url")
"""Of the answer to a post or an edit."""

RATE_HEADERS = ("X-RateLimit-Remaining", "X-RateLimit-Limit", "X-RateLimit-Reset")
"""Read by `limited_until` if the server refuses; the library would parse their dates at each answer."""

_REDIRECTS = range(300, 400)
_NO_HEADERS: Mapping[str, str] = {}


class Redirected(requests.RequestException):
    """The server sends its callers elsewhere."""


class MastodonSession(requests.Session):
    """Keeps the status and headers of the last answer. For one thread at a time."""

    def __init__(self, *, clock: Clock, seconds: float) -> None:
        super().__init__()
        self._clock = clock
        self._seconds = seconds
        self.status: int | None = None
        """Of the last answer; None if there was none."""

        self.headers_seen: Mapping[str, str] = _NO_HEADERS
        self._environment: dict[str, Any] | None = None

    def request(self, method: Any, url: Any, *args: Any, **options: Any) -> requests.Response:
        """One exchange; without an answer raises a `requests.RequestException`."""
        self.status, self.headers_seen = None, _NO_HEADERS
        ends_at = self._clock.monotonic() + self._seconds
        options |= {"allow_redirects": False, "stream": True, "timeout": self._seconds}
        response = super().request(method, url, *args, **options)
        try:
            if response.status_code in _REDIRECTS:
                raise Redirected("the server answers with a redirect")
            # The library looks for the body here before it reads one.
            body = self._body(response, ends_at)
            response._content = _status_read(body) if response.ok and method != "GET" else body  # noqa: SLF001 - requests has no other way
        finally:
            response.close()
        self.status, self.headers_seen = response.status_code, response.headers.copy()
        for name in RATE_HEADERS:
            response.headers.pop(name, None)
        return response

    def merge_environment_settings(
        self, url: Any, proxies: Any, stream: Any, verify: Any, cert: Any
    ) -> dict[str, Any]:
        """Proxies and certificates by the environment. Read once: every request goes to the same server."""
        if self._environment is None:
            self._environment = super().merge_environment_settings(
                url, proxies, stream, verify, cert
            )
        return self._environment.copy()

    def limited_until(self) -> datetime:
        """From when on requests are welcome again, by the last answer."""
        now, seen = self._clock.now(), self.headers_seen
        seconds = seconds_asked(seen.get("Retry-After"), now=now)
        if seconds is None:
            # Both are the server's: its clock need not be ours.
            seconds = _seconds_between(seen.get("Date"), seen.get("X-RateLimit-Reset"), now)
        return now + timedelta(seconds=PAUSE_SECONDS if seconds is None else seconds)

    def _body(self, response: requests.Response, ends_at: float) -> bytes:
        body = bytearray()
        for part in response.iter_content(CHUNK_BYTES):
            body += part
            if len(body) > BODY_BYTES_MAX or self._clock.monotonic() > ends_at:
                raise requests.ReadTimeout("the answer is too long or takes too long")
        return bytes(body)


def _status_read(body: bytes) -> bytes:
    """The part of a status that is read; what is none stays as it is."""
    try:
        status = json.loads(body)
    except (ValueError, RecursionError):
        return body
    if not isinstance(status, dict):
        return body
    return json.dumps({name: status.get(name) for name in STATUS_FIELDS_READ}).encode()


def _seconds_between(date: str | None, reset: str | None, now: datetime) -> float | None:
    until = _moment(reset)
    if until is None:
        return None
    seconds = (until - (_moment(date) or now)).total_seconds()
    return min(max(seconds, 0.0), ASKED_MAX_SECONDS)


def _moment(said: str | None) -> datetime | None:
    """Seconds since 1970, an ISO 8601 time or an HTTP date."""
    text = (said or "").strip()
    for read in (_from_number, datetime.fromisoformat, parsedate_to_datetime):
        try:
            moment = read(text)
        except (ValueError, OverflowError, OSError):
            continue
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return None


def _from_number(text: str) -> datetime:
    return datetime.fromtimestamp(int(text), UTC)
