"""Google Books, `volumes.list`: one page requested and parsed, or one of `outward.errors`.

An answer is good only if its status, its `kind` and its types say so. An error body is never an empty
page, and a page without `items` is empty only if it has a total. Google's 403 and 429 are read: the
allowance of a minute is waited for, that of a day ends the day.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from tsuzuki.collectors.books.book import Book, book_of
from tsuzuki.collectors.books.query_set import BookSearch
from tsuzuki.model.clock import Clock
from tsuzuki.outward.errors import OutOfQuota, RateLimitedUntil, SourceFailed, SourceRefused
from tsuzuki.outward.http import HttpClient, HttpResponse

SERVICE = "Google Books"
KIND = "books#volumes"
PAGE_SIZE_MAX = 40
MINUTE_SECONDS = 60.0

_DAY_REASONS = frozenset(
    {
        "dailyLimitExceeded",
        "dailyLimitExceededUnreg",
        "quotaExceeded",
        "quotaLimitExceeded",
        "variableTermExpiredDailyExceeded",
    }
)
"""A day's allowance, unless the error names a shorter time."""

_LIMIT_REASONS = frozenset(
    {
        "concurrentLimitExceeded",
        "limitExceeded",
        "rateLimitExceeded",
        "rateLimitExceededUnreg",
        "servingLimitExceeded",
        "userRateLimitExceeded",
        "userRateLimitExceededUnreg",
        "variableTermLimitExceeded",
        "RATE_LIMIT_EXCEEDED",
    }
)
_DAY_NAMES = ("per day", "perday", "1/d/", "daily")
_SHORT_NAMES = ("per minute", "perminute", "1/min/", "per second", "per 100 seconds")
_KEY_REASONS = frozenset({"keyInvalid", "keyExpired", "API_KEY_INVALID", "accessNotConfigured"})


@dataclass(frozen=True, kw_only=True)
class BookPage:
    """A good answer. `returned` counts what the list held, readable or not: it moves the cursor."""

    books: tuple[tuple[int, Book], ...]
    """Each with its offset in the page."""

    returned: int
    total_items: int


class GoogleBooksSource:
    """Asks for pages. `day_ends_at` says when a day's allowance is renewed."""

    def __init__(self, client: HttpClient, *, api_key: str, clock: Clock) -> None:
        self._client = client
        self._api_key = api_key
        self._clock = clock

    def page(
        self, search: BookSearch, *, start_index: int, max_results: int, day_ends_at: datetime
    ) -> BookPage:
        """One page. Raises `SourceFailed`."""
        answer = self._client.get(
            "/volumes",
            {
                "q": search.text,
                "startIndex": start_index,
                "maxResults": max_results,
                **search.list_options,
                "key": self._api_key,
            },
        )
        try:
            document = answer.json()
        except ValueError:
            document = None
        if answer.status != 200 or _is_error(document):
            raise self._failure(answer, document, day_ends_at)
        return self._understood(document, max_results)

    def _understood(self, document: object, max_results: int) -> BookPage:
        """The page in a good answer. What is beyond `max_results` was not asked for, and is left for the
        next request."""
        malformed = self._client.malformed
        if not isinstance(document, Mapping):
            raise malformed("this is not a JSON object")
        if document.get("kind") != KIND:
            raise malformed(f"its kind is not {KIND}")
        total = document.get("totalItems")
        if not isinstance(total, int) or isinstance(total, bool) or total < 0:
            raise malformed("totalItems is not a number")
        items = document.get("items", [])
        if not isinstance(items, list):
            raise malformed("items is not a list")
        del items[max_results:]
        books = ((offset, book_of(item)) for offset, item in enumerate(items))
        return BookPage(
            books=tuple((offset, book) for offset, book in books if book is not None),
            returned=len(items),
            total_items=total,
        )

    def _failure(self, answer: HttpResponse, document: Any, day_ends_at: datetime) -> SourceFailed:
        error = document.get("error") if isinstance(document, Mapping) else None
        if not isinstance(error, Mapping):
            return self._client.failure_of(answer)
        said = str(error.get("message", ""))
        reasons = _reasons(error)
        if answer.status == 429 or reasons & (_DAY_REASONS | _LIMIT_REASONS):
            return self._limit(answer, error, day_ends_at)
        if reasons & _KEY_REASONS:
            return SourceRefused(
                f"{SERVICE} does not accept the API key{self._client.quoted(said)}",
                hint="Check TSUZUKI_BOOKS_API_KEY, and that the Books API is enabled for this key.",
                code="api_key",
            )
        if answer.status == 200:
            return self._client.malformed(f"an error with status 200{self._client.quoted(said)}")
        return self._client.failure_of(answer, said)

    def _limit(
        self, answer: HttpResponse, error: Mapping[str, Any], day_ends_at: datetime
    ) -> RateLimitedUntil:
        """Too many questions: in a minute, or in a day."""
        said = str(error.get("message", ""))
        if _names(error, _DAY_NAMES) or (
            _reasons(error) & _DAY_REASONS and not _names(error, _SHORT_NAMES)
        ):
            return OutOfQuota(
                f"{SERVICE} reports that today's quota is used up{self._client.quoted(said)}",
                until=day_ends_at,
            )
        failure = self._client.failure_of(answer, said)
        if isinstance(failure, RateLimitedUntil):
            return failure
        until = self._clock.now() + timedelta(seconds=MINUTE_SECONDS)
        return RateLimitedUntil(failure.message, until=until)


def _is_error(document: object) -> bool:
    return isinstance(document, Mapping) and "error" in document


def _reasons(error: Mapping[str, Any]) -> set[str]:
    """Why, in all the places where Google says it."""
    entries = [*_listed(error.get("errors")), *_listed(error.get("details"))]
    return {str(entry["reason"]) for entry in entries if "reason" in entry}


def _names(error: Mapping[str, Any], names: tuple[str, ...]) -> bool:
    """Whether an error names one of these limits. Google calls a day's limit `rateLimitExceeded` too, and only
    its name tells: "Queries per day", `defaultPerDayPerProject`, `1/d/{project}`."""
    said = f"{error.get('message', '')} {json.dumps(_listed(error.get('details')))}".lower()
    return any(name in said for name in names)


def _listed(value: object) -> list[Mapping[str, Any]]:
    entries = value if isinstance(value, list) else []
    return [entry for entry in entries if isinstance(entry, Mapping)]
