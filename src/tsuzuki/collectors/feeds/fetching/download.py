"""One feed asked for, and its answer as a value: nothing new, a document, a failure, or not asked at all.

Runs in a thread of its own and touches no database.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias

from tsuzuki.collectors.feeds.fetching.request import ACCEPT, FeedRequest
from tsuzuki.model.clock import Clock
from tsuzuki.outward.errors import (
    RateLimitedUntil,
    SourceFailed,
    SourceRefused,
    SourceUnavailable,
)
from tsuzuki.outward.retry_after import seconds_asked
from tsuzuki.outward.safe_download import Downloaded, SafeDownloader

PAUSE_SECONDS = 900.0
"""After a 429 that does not say for how long."""

_GOOD = (200, 203)
_NOT_MODIFIED = 304


@dataclass(frozen=True, kw_only=True)
class Unchanged:
    """The server says so, or the document is the same to the byte (`is_full`)."""

    etag: str | None
    last_modified: str | None
    moved_to: str | None
    is_full: bool


@dataclass(frozen=True, kw_only=True)
class NewDocument:
    """`is_304_false`: to the old validators the server still says that nothing changed."""

    body: bytes
    body_hash: str
    url: str
    headers: Mapping[str, str]
    etag: str | None
    last_modified: str | None
    moved_to: str | None
    is_304_false: bool


@dataclass(frozen=True, kw_only=True)
class RefusedDownload:
    """No good answer. `is_gone`: there will never be one again (410). `is_missing`: not at this address."""

    failure: SourceFailed
    is_gone: bool = False
    is_missing: bool = False


@dataclass(frozen=True, kw_only=True)
class NotAsked:
    """The host has asked for a pause in this run."""

    until: datetime


FeedAnswer: TypeAlias = "Unchanged | NewDocument | RefusedDownload | NotAsked"


class FeedDownloads:
    """The requests of one run. A host that wants a pause gets no further ones."""

    def __init__(self, downloader: SafeDownloader, *, clock: Clock) -> None:
        self._downloader = downloader
        self._clock = clock
        self._paused_until: dict[str, datetime] = {}

    def ask(self, request: FeedRequest) -> FeedAnswer:
        """Ask for a feed once; never raises a failure of the source."""
        until = self._paused_until.get(request.host)
        if until is not None and self._clock.now() < until:
            return NotAsked(until=until)
        try:
            response = self._get(request, request.validators if request.is_conditional else {})
            return self._read(request, response)
        except SourceFailed as failure:
            self._note_pause(request.host, failure)
            return RefusedDownload(failure=failure)

    def _get(self, request: FeedRequest, validators: Mapping[str, str]) -> Downloaded:
        return self._downloader.get(
            request.address,
            headers={**request.headers, **validators},
            sensitive_headers=request.sensitive_headers,
            accept=ACCEPT,
            bytes_max=request.bytes_max,
        )

    def _read(self, request: FeedRequest, response: Downloaded) -> FeedAnswer:
        moved_to = response.moved_permanently_to or request.feed.moved_to
        etag = response.headers.get("etag")
        last_modified = response.headers.get("last-modified")
        if response.status == _NOT_MODIFIED and request.is_conditional:
            return Unchanged(
                etag=etag or request.feed.etag,
                last_modified=last_modified or request.feed.last_modified,
                moved_to=moved_to,
                is_full=False,
            )
        if response.status not in _GOOD:
            failure = self._failure_of(request, response)
            self._note_pause(request.host, failure)
            is_gone = response.status == 410
            return RefusedDownload(
                failure=failure, is_gone=is_gone, is_missing=is_gone or response.status == 404
            )
        body_hash = hashlib.sha256(response.body).hexdigest()
        if body_hash == request.feed.body_hash:
            return Unchanged(
                etag=etag, last_modified=last_modified, moved_to=moved_to, is_full=True
            )
        return NewDocument(
            body=response.body,
            body_hash=body_hash,
            url=response.final_url,
            headers=response.headers,
            etag=etag,
            last_modified=last_modified,
            moved_to=moved_to,
            is_304_false=self._is_304_false(request),
        )

    def _is_304_false(self, request: FeedRequest) -> bool:
        """After the whole was asked for and has changed: whether the old validators would have hidden it."""
        if request.is_conditional or not request.validators:
            return False
        try:
            return self._get(request, request.validators).status == _NOT_MODIFIED
        except SourceFailed:
            return False

    def _failure_of(self, request: FeedRequest, response: Downloaded) -> SourceFailed:
        host, status = request.host, response.status
        sentence = f"{host} answered {status}"
        asked = seconds_asked(response.headers.get("retry-after"), now=self._clock.now())
        match status:
            case 401 | 403:
                return SourceRefused(
                    f"{sentence}: access to the feed is denied",
                    hint="If it requires a key or another User-Agent, configure them in `requests` of the "
                    "section `feeds`.",
                )
            case 404:
                return SourceRefused(
                    f"{sentence}: no feed at this address",
                    hint="Look for its new address on the site.",
                )
            case 410:
                return SourceRefused(
                    f"{sentence}: the feed no longer exists",
                    hint="It is not fetched again. Remove it, or change its address.",
                )
            case 429:
                pause = PAUSE_SECONDS if asked is None else asked
                return RateLimitedUntil(
                    f"{sentence}: too many requests",
                    until=self._clock.now() + timedelta(seconds=pause),
                    retry_after_seconds=pause,
                )
            case _ if status >= 500 or status in (408, 425):
                return SourceUnavailable(sentence, retry_after_seconds=asked)
            case _:
                return SourceRefused(sentence)

    def _note_pause(self, host: str, failure: SourceFailed) -> None:
        if failure.retry_after_seconds:
            asked = timedelta(seconds=failure.retry_after_seconds)
            self._paused_until[host] = self._clock.now() + asked
