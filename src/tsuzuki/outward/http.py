"""The HTTP client of the collectors: one request, one response, within limits of time and size.

Every failure is raised as one of `outward.errors`.

Keys and tokens travel in queries and headers, so no message holds a URL with its query, no exception
of the library is chained to ours, and the library's own log, which names whole URLs, is silenced.
"""

import json
import logging
import ssl
from collections.abc import Collection, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Self
from urllib.parse import urlencode, urlsplit

import httpx2

from tsuzuki.model.clock import Clock
from tsuzuki.model.errors import ConfigurationError
from tsuzuki.outward.deadline import ExchangeDeadline, set_deadline
from tsuzuki.outward.errors import (
    NotConnected,
    RateLimitedUntil,
    SourceFailed,
    SourceRefused,
    SourceUnavailable,
)
from tsuzuki.outward.redaction import redacted
from tsuzuki.outward.retry_after import seconds_asked
from tsuzuki.outward.user_agent import user_agent

CONNECT_SECONDS = 10.0
SILENCE_SECONDS = 30.0
ANSWER_SECONDS = 60.0
BODY_BYTES_MAX = 8 * 1024 * 1024
QUOTED_CHARACTERS_MAX = 300
NO_HEADERS: Mapping[str, str] = {}

_BEFORE_SENDING = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
    httpx2.UnsupportedProtocol,
    httpx2.InvalidURL,
)
"""Failures that happen before the first byte of a request is sent."""


@dataclass(frozen=True, kw_only=True)
class HttpResponse:
    """A response that came whole, with any status."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The body read as JSON. Raises `ValueError`."""
        try:
            return json.loads(self.body)
        except RecursionError:
            raise ValueError("nested too deeply") from None


class HttpClient:
    """Sends requests to one service, from any thread. `close` it when none is under way, or use it in a
    `with`. `silence_seconds` is how long the service may take between two bytes."""

    def __init__(
        self,
        *,
        service: str,
        base_url: str,
        clock: Clock,
        secrets: Collection[str] = (),
        answer_seconds: float = ANSWER_SECONDS,
        silence_seconds: float = SILENCE_SECONDS,
        body_bytes_max: int = BODY_BYTES_MAX,
    ) -> None:
        self.service = service
        self._base_url = checked_base_url(base_url, service=service).rstrip("/")
        self._clock = clock
        self._secrets = tuple(secrets)
        self._answer_seconds = answer_seconds
        self._body_bytes_max = body_bytes_max
        silence_library_log()
        silence = min(silence_seconds, answer_seconds)
        timeout = httpx2.Timeout(silence, connect=min(CONNECT_SECONDS, answer_seconds))
        self._extensions = {"timeout": timeout.as_dict()}
        self._client = httpx2.Client(
            follow_redirects=False,
            # To read the trusted certificates takes longer than many a run; plain http, which is not
            # led anywhere else either, has none to check.
            verify=trusted_certificates() if self._base_url.startswith("https:") else False,
            headers={"Accept": "application/json", "User-Agent": user_agent()},
        )
        self._deadline = ExchangeDeadline(clock)
        set_deadline(self._client, self._deadline)

    def get(
        self,
        path: str,
        params: Mapping[str, str | int],
        *,
        headers: Mapping[str, str] = NO_HEADERS,
    ) -> HttpResponse:
        """The response to a GET, read whole within `answer_seconds`. Raises `SourceUnavailable` if there is
        none."""
        query = f"?{urlencode(params)}" if params else ""
        return self._exchange("GET", f"{self._base_url}{path}{query}", headers=headers)

    def post_json(
        self, path: str, document: Any, *, headers: Mapping[str, str] = NO_HEADERS
    ) -> HttpResponse:
        """The response to a POST of JSON, sent once. Raises `NotConnected` if it was certainly not sent, and
        `SourceUnavailable` if it may have been."""
        body = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
        headers = {"Content-Type": "application/json", **headers}
        return self._exchange("POST", self._base_url + path, body=body, headers=headers)

    def _exchange(
        self,
        method: str,
        url: str,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] = NO_HEADERS,
    ) -> HttpResponse:
        try:
            # Made here: the client would parse the URL twice, and merge in cookies.
            question = httpx2.Request(
                method,
                url,
                headers={**self._client.headers, **headers} if headers else self._client.headers,
                content=body,
                extensions=self._extensions,
            )
            with self._deadline.within(self._answer_seconds):
                response = self._client.send(question, stream=True)
                with closing(response):
                    answer = self._read(response)
            return HttpResponse(status=response.status_code, headers=response.headers, body=answer)
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as problem:
            # Not chained: the library's exceptions carry the request, and that the key.
            raise self._unavailable(problem) from None

    def post(
        self, *, query: str = "", body: bytes, headers: Mapping[str, str] = NO_HEADERS
    ) -> HttpResponse:
        """The response to a POST to the base URL, sent once. Raises as `post_json` does."""
        url = f"{self._base_url}?{query}" if query else self._base_url
        return self._exchange("POST", url, body=body, headers=headers)

    def close(self) -> None:
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def failure_of(self, answer: HttpResponse, said: str = "") -> SourceFailed:
        """The error that a bad response means, by its status alone."""
        sentence = f"{self.service} answered {answer.status}{self.quoted(said)}"
        match answer.status:
            case 429:
                return RateLimitedUntil(sentence, until=self._until(answer, 60.0))
            case 408 | 425 | 500 | 502 | 503 | 504 | 507 | 520 | 521 | 522 | 523 | 524:
                return SourceUnavailable(sentence, retry_after_seconds=self._retry_after(answer))
            case _:
                return SourceRefused(sentence)

    def malformed(self, what: str) -> SourceUnavailable:
        """An answer that came whole and is not what was asked for: a page for people, half a
        document, another type. Never taken for an empty one."""
        return SourceUnavailable(f"{self.service} sent an invalid response: {what}")

    def quoted(self, said: str) -> str:
        """What the other side said, fit for a sentence: short, one line, without secrets and addresses."""
        words = redacted(said, secrets=self._secrets)
        if len(words) > QUOTED_CHARACTERS_MAX:
            words = words[:QUOTED_CHARACTERS_MAX] + "…"
        return f": {words}" if words else ""

    def _read(self, response: httpx2.Response) -> bytes:
        """The body, unless it is too large."""
        body = bytearray()
        for part in response.iter_bytes():
            body += part
            if len(body) > self._body_bytes_max:
                raise SourceRefused(
                    f"{self.service} sent a response of more than {self._body_bytes_max} bytes"
                )
        return bytes(body)

    def _unavailable(self, problem: Exception) -> SourceUnavailable:
        category = NotConnected if isinstance(problem, _BEFORE_SENDING) else SourceUnavailable
        if isinstance(problem, httpx2.TimeoutException):
            return category(
                f"{self.service} did not respond in time ({self._answer_seconds:g} s for the whole "
                "response)"
            )
        kind = type(problem).__name__
        return category(f"{self.service} is unreachable ({kind}){self.quoted(str(problem))}")

    def _retry_after(self, answer: HttpResponse) -> float | None:
        return seconds_asked(answer.headers.get("retry-after"), now=self._clock.now())

    def _until(self, answer: HttpResponse, default_seconds: float) -> datetime:
        asked = self._retry_after(answer)
        return self._clock.now() + timedelta(seconds=default_seconds if asked is None else asked)


def checked_base_url(url: str, *, service: str) -> str:
    """The URL of a service, if it is one. Raises `ConfigurationError`, without repeating it: there
    may be a password in it."""
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname)
        is_bare = not (parts.username or parts.password or parts.query or parts.fragment)
    except ValueError:
        is_usable = is_bare = False
    if not (is_usable and is_bare):
        raise ConfigurationError(
            f"the base URL of {service} is not a plain http(s) URL",
            hint="Write it as https://host/path, without user, query or fragment.",
            code="base_url",
        )
    return url


@cache
def trusted_certificates() -> ssl.SSLContext:
    """The certificates that this machine trusts, read once."""
    return ssl.create_default_context()


def silence_library_log() -> None:
    """Its log names every URL with its query, and so the key. Warnings and errors still come."""
    for name in ("httpx2", "httpcore2", "httpcore"):
        logger = logging.getLogger(name)
        if logger.level < logging.WARNING:
            logger.setLevel(logging.WARNING)
