"""Pages as GitLab cuts them: by number with headers, or by key with a link to what follows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import parse_qsl, urlencode

from tsuzuki.sandbox.exchange import StandInRequest

from .error_responses import ErrorResponse

PER_PAGE = 20
PER_PAGE_MAX = 100
TRUE_WORDS = {"1", "t", "true", "y", "yes", "on"}
FALSE_WORDS = {"0", "f", "false", "n", "no", "off", ""}

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class PageWindow:
    """The page a request asks for."""

    page: int
    per_page: int

    def of(self, rows: Sequence[T]) -> Sequence[T]:
        start = (self.page - 1) * self.per_page
        return rows[start : start + self.per_page]


def window(request: StandInRequest) -> PageWindow:
    page, per_page = whole_number(request, "page", 1), whole_number(request, "per_page", PER_PAGE)
    if page < 1:
        raise ErrorResponse(400, {"error": "page does not have a valid value"})
    if per_page < 1:
        raise ErrorResponse(400, {"error": "per_page does not have a valid value"})
    return PageWindow(page=page, per_page=min(per_page, PER_PAGE_MAX))


def whole_number(request: StandInRequest, name: str, default: int) -> int:
    text = request.query.get(name)
    if text is None:
        return default
    if not text.removeprefix("-").isdecimal():
        raise ErrorResponse(400, {"error": f"{name} is invalid"})
    return int(text)


def flag(request: StandInRequest, name: str) -> bool | None:
    """True, false, or None if it was not given."""
    text = request.query.get(name)
    if text is None:
        return None
    if text.lower() not in TRUE_WORDS | FALSE_WORDS:
        raise ErrorResponse(400, {"error": f"{name} is invalid"})
    return text.lower() in TRUE_WORDS


def offset_headers(
    request: StandInRequest, shown: PageWindow, *, length: int, with_totals: bool
) -> dict[str, str]:
    """The headers of a page by number, in a list of `length` rows; commits come without totals."""
    pages = -(-length // shown.per_page)
    following = shown.page + 1 if shown.page < pages else None
    previous = shown.page - 1 if shown.page > 1 else None
    places = {"prev": previous, "next": following, "first": 1}
    if with_totals:
        places["last"] = max(pages, 1)
    headers = {
        "X-Per-Page": str(shown.per_page),
        "X-Page": str(shown.page),
        "X-Next-Page": str(following or ""),
        "X-Prev-Page": str(previous or ""),
        "Link": ", ".join(
            f'<{_link(request, page=str(page), per_page=str(shown.per_page))}>; rel="{place}"'
            for place, page in places.items()
            if page
        ),
    }
    if with_totals:
        headers |= {"X-Total": str(length), "X-Total-Pages": str(pages)}
    return headers


def keyset_headers(request: StandInRequest, **key: str) -> dict[str, str]:
    """The link to the page behind this key; no key, no further page."""
    return {"Link": f'<{_link(request, **key)}>; rel="next"'} if key else {}


def _link(request: StandInRequest, **changes: str) -> str:
    pairs = parse_qsl(request.query_text, keep_blank_values=True)
    kept = [(name, value) for name, value in pairs if name not in changes]
    return f"{request.base_url}{request.path}?{urlencode([*kept, *changes.items()])}"
