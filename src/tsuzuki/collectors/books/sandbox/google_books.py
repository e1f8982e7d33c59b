"""A stand-in for Google Books, `volumes.list`: its parameters, bounds, manners and errors.

    catalogue = [volume(1, title="Astronomy for all"), *volumes(150)]
    with StandIn(GoogleBooks(catalogue)) as books:
        books_base_url = f"{books.url}/books/v1"

Its manners are those that hurt: `totalItems` may wander from answer to answer, a page may be shorter than
asked for, the same volume may come on two pages, and an empty page has no `items` at all. Limits per
minute and per day are kept if they are given; `limit_error` is what they answer, also for a `StandInFault`.
"""

import json
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tsuzuki.sandbox.exchange import Response, Route, Router, StandInRequest, json_response
from tsuzuki.sandbox.faults import StandInFault
from tsuzuki.sandbox.stand_in_kind import StandInContext

PATH = "/books/v1/volumes"
PAGE_SIZE_DEFAULT = 10
PAGE_SIZE_MAX = 40
CHOICES = {"printType": ("all", "books", "magazines"), "orderBy": ("newest", "relevance")}

Volume = Mapping[str, Any]


def volume(number: int, **about: Any) -> dict[str, Any]:
    """One volume as Google describes it; `about` goes over its `volumeInfo`."""
    stem = f"978{number:09d}"
    check = -sum(int(digit) * (3 if i % 2 else 1) for i, digit in enumerate(stem)) % 10
    return {
        "kind": "books#volume",
        "id": f"vol{number:09d}",
        "volumeInfo": {
            "title": f"The Python Book of Things, Part {number}",
            "authors": [f"Author {number % 97}"],
            "publisher": "Sandbox Press",
            "publishedDate": f"{2000 + number % 26}-{1 + number % 12:02d}",
            "description": f"What there is to know about thing {number}.",
            "industryIdentifiers": [{"type": "ISBN_13", "identifier": f"{stem}{check}"}],
            "pageCount": 100 + number % 400,
            "printType": "BOOK",
            "language": "en",
            "infoLink": f"https://books.example/volume?id=vol{number:09d}",
            **about,
        },
    }


def volumes(count: int, *, first: int = 0) -> list[dict[str, Any]]:
    return [volume(number) for number in range(first, first + count)]


@dataclass
class GoogleBooks:
    """The application of a `StandIn`. Its fields may be set anew while it serves."""

    catalogue: Sequence[Volume] = field(default_factory=lambda: volumes(150))
    key: str | None = None
    """The only key that is accepted; None accepts any, and none."""

    totals: Sequence[int] = (0,)
    """How far `totalItems` is from the truth, in turn, one for each answer."""

    page_size_max: int = PAGE_SIZE_MAX
    """Pages are never longer, whatever was asked for."""

    page_size_min: int = 0
    """Pages are never shorter while there is more, though fewer were asked for: a server that breaks its word."""

    calls_per_minute: int | None = None
    calls_per_day: int | None = None
    """After so many good answers, its error; `new_minute` and `new_day` let calls in again."""

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._responses = 0
        self._minute = 0
        self._day = 0
        self._found_in: Sequence[Volume] = ()
        self._found: dict[tuple[str, ...], list[Volume]] = {}
        self._router = Router([Route("GET", PATH, self._list)], otherwise=_not_found)

    def __call__(self, request: StandInRequest) -> Response:
        return self._router(request)

    def new_minute(self) -> None:
        with self._lock:
            self._minute = 0

    def new_day(self) -> None:
        with self._lock:
            self._minute = self._day = 0

    def _list(self, request: StandInRequest) -> Response:
        wrong = self._invalid_parameter(request.query)
        if wrong is not None:
            return wrong
        with self._lock:
            if self.calls_per_day is not None and self._day >= self.calls_per_day:
                return _error_response(limit_error("day"), status=429)
            if self.calls_per_minute is not None and self._minute >= self.calls_per_minute:
                return _error_response(limit_error("minute"), status=429)
            self._minute += 1
            self._day += 1
            self._responses += 1
            wander = self.totals[(self._responses - 1) % len(self.totals)]
        return self._page(request.query, wander)

    def _page(self, query: Mapping[str, str], wander: int) -> Response:
        found = self._search(query)
        start = int(query.get("startIndex", 0))
        asked = int(query.get("maxResults", PAGE_SIZE_DEFAULT))
        size = max(min(asked, self.page_size_max), self.page_size_min)
        items = found[start : start + size]
        document: dict[str, Any] = {
            "kind": "books#volumes",
            "totalItems": max(len(found) + wander, 0),
        }
        if items:
            document["items"] = items
        # Escaped: a catalogue may hold what no encoding does, and JSON can say even that.
        return Response(body=json.dumps(document).encode())

    def _search(self, query: Mapping[str, str]) -> list[Volume]:
        """What matches, in the order asked for. Kept: paging asks for it again and again."""
        wanted = tuple(
            query.get(name, "") for name in ("q", "langRestrict", "printType", "orderBy")
        )
        if self._found_in is not self.catalogue or wanted not in self._found:
            text, language, print_type, order = wanted
            found = [
                one
                for one in self.catalogue
                if _matches(one, text)
                and language in ("", _info(one).get("language"))
                and print_type in ("", "all", f"{_info(one).get('printType', '')}s".lower())
            ]
            if order == "newest":
                found.sort(key=lambda one: str(_info(one).get("publishedDate", "")), reverse=True)
            self._found_in, self._found = self.catalogue, {wanted: found}
        return self._found[wanted]

    def _invalid_parameter(self, query: Mapping[str, str]) -> Response | None:
        if self.key is not None and query.get("key") != self.key:
            return _error_response(KEY_ERROR, status=400)
        if not query.get("q", "").strip():
            return _error_response(_error(400, "Missing query.", "queryRequired"), status=400)
        for name, lowest, highest in (
            ("maxResults", 0, PAGE_SIZE_MAX),
            ("startIndex", 0, 2**31 - 1),
        ):
            said = query.get(name, "0")
            if not re.fullmatch(r"-?[0-9]{1,10}", said) or not lowest <= int(said) <= highest:
                message = f"Invalid value '{said}'. Values must be within the range: [{lowest}, {highest}]"
                return _error_response(_error(400, message, "invalidParameter"), status=400)
        for name, choices in CHOICES.items():
            if query.get(name, choices[0]) not in choices:
                message = f"Invalid string value: '{query[name]}'. Allowed values: {list(choices)}"
                return _error_response(_error(400, message, "invalidParameter"), status=400)
        return None


def start(context: StandInContext) -> dict[str, str]:
    """Start it in `tsuzuki sandbox`."""
    server = context.serve(GoogleBooks())
    return {
        "TSUZUKI_BOOKS_BASE_URL": f"{server.url}/books/v1",
        "TSUZUKI_BOOKS_API_KEY": "sandbox-key",
    }


def limit_error(span: Literal["minute", "day"]) -> dict[str, Any]:
    """What Google answers when there were too many queries: one reason for both, told apart only
    by the names of the limits."""
    unit, name = {
        "minute": ("1/min/{project}", "defaultPerMinutePerProject"),
        "day": ("1/d/{project}", "defaultPerDayPerProject"),
    }[span]
    message = (
        f"Quota exceeded for quota metric 'Queries' and limit 'Queries per {span}' "
        "of service 'books.googleapis.com' for consumer 'project_number:1'."
    )
    return {
        "error": {
            **_error(429, message, "rateLimitExceeded")["error"],
            "status": "RESOURCE_EXHAUSTED",
            "details": [
                {
                    "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                    "reason": "RATE_LIMIT_EXCEEDED",
                    "domain": "googleapis.com",
                    "metadata": {"quota_limit": name, "quota_unit": unit},
                }
            ],
        }
    }


def old_limit_error(reason: str, message: str) -> dict[str, Any]:
    """The same as Google's older servers say it: status 403, and a reason that tells."""
    return _error(403, message, reason, domain="usageLimits")


def error_fault(document: Mapping[str, Any], **fault: Any) -> StandInFault:
    """A fault that answers with one of these errors."""
    code = int(document["error"]["code"])
    return StandInFault(status=code, body=json.dumps(document), **fault)


def _error(code: int, message: str, reason: str, *, domain: str = "global") -> dict[str, Any]:
    single = {"message": message, "domain": domain, "reason": reason}
    return {"error": {"code": code, "message": message, "errors": [single]}}


KEY_ERROR = {
    "error": {
        **_error(400, "API key not valid. Please pass a valid API key.", "badRequest")["error"],
        "status": "INVALID_ARGUMENT",
        "details": [
            {
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": "API_KEY_INVALID",
                "domain": "googleapis.com",
            }
        ],
    }
}


def _error_response(document: Mapping[str, Any], *, status: int) -> Response:
    return json_response(document, status=status)


def _not_found(_request: StandInRequest) -> Response:
    return _error_response(_error(404, "Not Found", "notFound"), status=404)


def _info(one: Volume) -> Mapping[str, Any]:
    info = one.get("volumeInfo")
    return info if isinstance(info, Mapping) else {}


def _matches(one: Volume, text: str) -> bool:
    """Whether all words of one alternative occur in what the volume says; prefixes such as
    `intitle:` are left out."""
    said = json.dumps(_info(one), ensure_ascii=False).lower()
    return any(
        all(word.rpartition(":")[2].strip('"').lower() in said for word in alternative.split())
        for alternative in text.split(" OR ")
    )
