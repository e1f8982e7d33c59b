"""The HTTP session under Mastodon.py: no redirects, one deadline, a bounded body, and what the answer said.

The library would follow a redirect of a POST with a GET, wait for each single read anew, and keep the status and
the headers of an answer to itself.
"""

import io
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

import requests
from urllib3.exceptions import HTTPError, ReadTimeoutError

from tsuzuki.model.clock import Clock
from tsuzuki.outward.retry_after import ASKED_MAX_SECONDS, seconds_asked

BODY_BYTES_MAX = 8 * 1024 * 1024
CHUNK_BYTES = 64 * 1024
PAUSE_SECONDS = 300.0
"""The length of Mastodon's own rate windows, for an answer that says none."""

RATE_HEADERS = ("X-RateLimit-Remaining", "X-RateLimit-Limit", "X-RateLimit-Reset")
"""Read by `limited_until` if the server refuses. The library would raise an error for a date that it cannot read, also
after a post was taken."""

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
                raise Redirected("the server redirects")
            body = self._body(response, ends_at)
        finally:
            response.close()
        response.raw = io.BytesIO(body)
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
        try:
            # read1 returns with what has come, so a server that drips cannot keep us here.
            while part := response.raw.read1(CHUNK_BYTES, decode_content=True):
                body += part
                if len(body) > BODY_BYTES_MAX or self._clock.monotonic() > ends_at:
                    raise requests.ReadTimeout("the response is too long or takes too long")
        except (ReadTimeoutError, TimeoutError) as problem:
            raise requests.ReadTimeout(str(problem)) from problem
        except (HTTPError, OSError) as problem:
            if isinstance(problem, requests.RequestException):
                raise
            raise requests.ConnectionError(str(problem)) from problem
        return bytes(body)


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
