"""Change a feed site over HTTP, for a person with curl and for tests of other processes.

    GET    /_sandbox/feeds                 the feeds, and the articles each one lists
    POST   /_sandbox/feeds                 add one: {"path": "/new.xml", "format": "atom"}
    PATCH  /_sandbox/feeds                 change one: {"path": "/news.rdf", "delivery": {"status": 410}}
    POST   /_sandbox/articles              add one: {"feed": "/news.rdf", "title": "...", "text": "..."}
    PATCH  /_sandbox/articles/{name}       change one: {"text": "..."}
    DELETE /_sandbox/articles/{name}       take it out of its feeds; its page is gone (410)
    POST   /_sandbox/articles/{name}/move  {"path": "/moved", "status": 301}
    POST   /_sandbox/redirects             {"path": "/old", "location": "/new", "status": 301}

The fields are those of `content.Feed`, `content.Article` and what they hold. A part such as `delivery` is given
whole: what it leaves out has its default.
"""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from tsuzuki.sandbox.control import PREFIX
from tsuzuki.sandbox.exchange import Application, Response, Route, StandInRequest, json_response

from .content import ASSIGNED, Article, ArticlePage, Charset, Enclosure, Feed, Format, MediaContent
from .damage import Damage
from .delivery import Compression, Conditional, DateKind, EtagKind, FeedDelivery

if TYPE_CHECKING:
    from .site import FeedSite

PARTS: Final[Mapping[str, type]] = {
    "delivery": FeedDelivery,
    "page": ArticlePage,
    "charset": Charset,
}
LISTS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "authors": str,
    "categories": str,
    "damages": Damage,
    "enclosures": lambda given: Enclosure(**_values(Enclosure, given)),
    "media": lambda given: MediaContent(**_values(MediaContent, given)),
}
CHOICES: Final[Mapping[str, type[StrEnum]]] = {
    "format": Format,
    "etag": EtagKind,
    "last_modified": DateKind,
    "conditional": Conditional,
    "compression": Compression,
}
NOT_OVER_HTTP: Final = {"attachments", "later"}


def control_routes(site: "FeedSite") -> list[Route]:
    def add_feed(request: StandInRequest) -> Response:
        feed = site.add_feed(Feed(**_values(Feed, request.json())))
        return json_response(_feed_row(site, feed), status=201)

    def edit_feed(request: StandInRequest) -> Response:
        given = _object(request.json())
        changes = _values(Feed, given)
        feed = site.edit_feed(_text(given, "path"), **changes)
        return json_response(_feed_row(site, feed))

    def add_article(request: StandInRequest) -> Response:
        given = _object(request.json())
        feed = _text(given, "feed")
        del given["feed"]
        article = site.add_article(feed, Article(**_values(Article, given)))
        return json_response(_article_row(article), status=201)

    def edit_article(request: StandInRequest) -> Response:
        changes = _values(Article, request.json())
        return json_response(_article_row(site.edit_article(request.params["name"], **changes)))

    def remove_article(request: StandInRequest) -> Response:
        site.remove_article(request.params["name"])
        return Response(status=204)

    def move_article(request: StandInRequest) -> Response:
        given = _object(request.json())
        moved = site.move_article(
            request.params["name"], _text(given, "path"), status=_status(given)
        )
        return json_response(_article_row(moved))

    def add_redirect(request: StandInRequest) -> Response:
        given = _object(request.json())
        path, location = _text(given, "path"), _text(given, "location")
        site.add_redirect(path, location, status=_status(given))
        return json_response({"path": path, "location": location}, status=201)

    return [
        Route("GET", f"{PREFIX}/feeds", lambda _: _feed_rows(site)),
        Route("POST", f"{PREFIX}/feeds", _checked(add_feed)),
        Route("PATCH", f"{PREFIX}/feeds", _checked(edit_feed)),
        Route("POST", f"{PREFIX}/articles", _checked(add_article)),
        Route("PATCH", f"{PREFIX}/articles/{{name}}", _checked(edit_article)),
        Route("DELETE", f"{PREFIX}/articles/{{name}}", _checked(remove_article)),
        Route("POST", f"{PREFIX}/articles/{{name}}/move", _checked(move_article)),
        Route("POST", f"{PREFIX}/redirects", _checked(add_redirect)),
    ]


def _checked(application: Application) -> Application:
    """Bad input changes nothing and is told."""

    def checked(request: StandInRequest) -> Response:
        try:
            return application(request)
        except KeyError as missing:
            return json_response({"message": f"there is no {missing}"}, status=404)
        except (ValueError, TypeError) as problem:
            return json_response({"message": str(problem)}, status=400)

    return checked


def _feed_rows(site: "FeedSite") -> Response:
    return json_response([_feed_row(site, feed) for feed in site.feeds])


def _feed_row(site: "FeedSite", feed: Feed) -> dict[str, Any]:
    articles = [_article_row(article) for article in site.articles(feed)]
    return {
        "path": feed.path,
        "title": feed.title,
        "format": feed.format,
        "language": feed.language,
        "status": feed.delivery.status,
        "articles": articles,
    }


def _article_row(article: Article) -> dict[str, Any]:
    return {"name": article.name, "path": article.path, "title": article.title}


def _object(given: Any) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise TypeError("an object is expected")
    return dict(given)


def _text(given: Mapping[str, Any], name: str) -> str:
    if not isinstance(given.get(name), str):
        raise TypeError(f"{name} is needed, as text")
    return str(given[name])


def _status(given: Mapping[str, Any]) -> int:
    status = given.get("status", 301)
    if not isinstance(status, int):
        raise TypeError("status is a number")
    return status


def _values(kind: type, given: Any) -> dict[str, Any]:
    """The fields of a value, converted from JSON."""
    known = {one.name: one.default for one in fields(kind) if one.name not in NOT_OVER_HTTP}
    return {name: _value(name, value, known) for name, value in _object(given).items()}


def _value(name: str, value: Any, known: Mapping[str, Any]) -> Any:
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean {near[0]}?" if near else f"; there are {', '.join(sorted(known))}"
        raise ValueError(f"there is no field {name}{hint}")
    if name in PARTS:
        return PARTS[name](**_values(PARTS[name], value))
    if name in ("headers", "required"):
        return {str(key): str(text) for key, text in _object(value).items()}
    if name in LISTS:
        if not isinstance(value, list):
            raise TypeError(f"{name} is a list")
        return tuple(LISTS[name](one) for one in value)
    if name in CHOICES:
        return CHOICES[name](value)
    _check_type(name, value, known[name])
    if name in ("published", "updated") and isinstance(value, str):
        return _moment(value)
    return value.encode() if name == "body" and isinstance(value, str) else value


def _check_type(name: str, value: Any, default: Any) -> None:
    """A number or a flag where the default is one, and text otherwise; null where it has a meaning."""
    if isinstance(default, bool):
        fits = isinstance(value, bool)
    elif isinstance(default, float):
        fits = isinstance(value, int | float)
    elif isinstance(default, int) or (name == "articles_max" and value is not None):
        fits = isinstance(value, int) and not isinstance(value, bool)
    else:
        fits = isinstance(value, str) or (value is None and default in (None, ASSIGNED))
    if not fits:
        raise TypeError(f"{name} cannot be {value!r}")


def _moment(text: str) -> datetime | str:
    """A time in ISO 8601 with its zone is one; any other text goes into the feed as it is."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return text
    return moment if moment.tzinfo else text
