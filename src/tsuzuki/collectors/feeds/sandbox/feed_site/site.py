"""The site itself: it keeps feeds, articles and files, and answers requests for them.

Each change is one second of the site's own time, so the same calls make the same bytes, dates and ETags.
Safe to change while it serves: a request sees the site before a change or after it.
"""

import ssl
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, Final
from urllib.parse import unquote

from tsuzuki.sandbox.exchange import Response, StandInRequest, Stream
from tsuzuki.sandbox.server import StandIn

from .content import ASSIGNED, Article, Feed, File
from .control_routes import control_routes
from .delivery import Content, FeedDelivery, deliver
from .feed_documents import feed_content_type, feed_document
from .pages import article_page, page_content_type

START: Final = datetime(2026, 4, 1, tzinfo=UTC)
NOTHING: Final = File(path="", body=b"", delivery=FeedDelivery(status=404))


@dataclass
class _KeptFeed:
    feed: Feed
    names: dict[str, None] = field(default_factory=dict)
    """The names of its articles, oldest first."""

    changed_at: datetime = START
    made: dict[str, Content] = field(default_factory=dict)
    """The documents since the last change, by base address."""


@dataclass
class _KeptArticle:
    article: Article
    language: str
    changed_at: datetime
    page_requests: int = 0


class FeedSite:
    """The application of a `StandIn`; `serve` starts one.

    Feeds are named by their path and articles by their name; where one is asked for, either the value or its
    key does. What is not there raises KeyError.
    """

    def __init__(self, *, start: datetime = START) -> None:
        self._now = start
        self._start = start
        self._lock = threading.RLock()
        self._feeds: dict[str, _KeptFeed] = {}
        self._articles: dict[str, _KeptArticle] = {}
        self._pages: dict[str, str] = {}
        self._files: dict[str, tuple[File, datetime]] = {}
        self._streamed: Counter[str] = Counter()
        self.control_routes = control_routes(self)

    @property
    def feeds(self) -> list[Feed]:
        with self._lock:
            return [kept.feed for kept in self._feeds.values()]

    def feed(self, path: Feed | str) -> Feed:
        with self._lock:
            return self._feeds[_path(path)].feed

    def articles(self, feed: Feed | str) -> list[Article]:
        """Those the feed was given, oldest first."""
        with self._lock:
            return [self._articles[name].article for name in self._feeds[_path(feed)].names]

    def article(self, name: Article | str) -> Article:
        with self._lock:
            return self._articles[_name(name)].article

    def add_feed(self, feed: Feed, articles: Iterable[Article] = ()) -> Feed:
        with self._lock:
            if feed.path in self._feeds:
                raise ValueError(f"there is a feed at {feed.path} already")
            self._feeds[feed.path] = _KeptFeed(feed, changed_at=self._tick())
            for article in articles:
                self.add_article(feed, article)
            return feed

    def edit_feed(self, feed: Feed | str, **changes: Any) -> Feed:
        """Change fields of a feed; a new `path` moves it and leaves nothing behind."""
        with self._lock:
            old = _path(feed)
            kept = self._feeds[old]
            changed = replace(kept.feed, **changes)
            if changed.path != old and changed.path in self._feeds:
                raise ValueError(f"there is a feed at {changed.path} already")
            kept.feed = changed
            self._feeds = {one.feed.path: one for one in self._feeds.values()}
            self._touch(kept)
            return changed

    def add_article(self, feed: Feed | str, article: Article) -> Article:
        """Publish an article in a feed; what it leaves `ASSIGNED` is filled in."""
        with self._lock:
            kept = self._feeds[_path(feed)]
            article = self._assigned(article)
            if article.name in self._articles:
                raise ValueError(
                    f"there is an article {article.name} already: list it with list_article"
                )
            self._check_path(article)
            self._articles[article.name] = _KeptArticle(article, kept.feed.language, self._tick())
            self._keep_parts(article)
            self.list_article(kept.feed, article)
            return article

    def list_article(self, feed: Feed | str, article: Article | str) -> None:
        """Put an article of the site into one more feed, as its newest."""
        with self._lock:
            kept = self._feeds[_path(feed)]
            kept.names.pop(_name(article), None)
            kept.names[_name(article)] = None
            self._touch(kept)

    def unlist_article(self, feed: Feed | str, article: Article | str) -> None:
        """Take it out of a feed; its page stays."""
        with self._lock:
            kept = self._feeds[_path(feed)]
            del kept.names[_name(article)]
            self._touch(kept)

    def edit_article(self, article: Article | str, **changes: Any) -> Article:
        """Change fields of an article, in its page and in every feed that lists it.

        A new `path` leaves nothing at the old one; `move_article` leaves a redirect."""
        with self._lock:
            kept = self._articles[_name(article)]
            changed = replace(kept.article, **changes)
            if changed.name != kept.article.name:
                raise ValueError("the name of an article never changes")
            self._check_path(changed)
            if changed.path != kept.article.path:
                del self._pages[kept.article.path]
            kept.article = changed
            kept.changed_at = self._tick()
            self._keep_parts(kept.article)
            for listing in self._feeds.values():
                if kept.article.name in listing.names:
                    self._touch(listing)
            return kept.article

    def move_article(self, article: Article | str, path: str, *, status: int = 301) -> Article:
        """Give the page another path; the old one redirects there."""
        with self._lock:
            old = self.article(article).path
            moved = self.edit_article(article, path=path)
            if moved.path != old:
                self.add_redirect(old, moved.path, status=status)
            return moved

    def remove_article(self, article: Article | str) -> None:
        """Take the article out of every feed; its page is gone."""
        with self._lock:
            kept = self._articles[_name(article)]
            for listing in self._feeds.values():
                if kept.article.name in listing.names:
                    self.unlist_article(listing.feed, kept.article)
            page = replace(kept.article.page, delivery=FeedDelivery(status=410))
            self.edit_article(kept.article, page=page)

    def add_file(self, file: File) -> File:
        """Serve a file at its path; one that was there is replaced."""
        with self._lock:
            self._files[file.path] = (file, self._tick())
            return file

    def add_redirect(self, path: str, location: str, *, status: int = 301) -> None:
        """Redirect to a path of the site, or to any other address."""
        self.add_file(
            File(path=path, body=b"", delivery=FeedDelivery(status=status, location=location))
        )

    def page_requests(self, article: Article | str) -> int:
        """How often the page was answered."""
        with self._lock:
            return self._articles[_name(article)].page_requests

    def streamed_bytes(self, path: str) -> int:
        """How much of the streams at this path was sent so far, also to clients that went away."""
        with self._lock:
            return self._streamed[path]

    def serve(self, *, port: int = 0, tls: ssl.SSLContext | None = None) -> StandIn:
        """A server of this site, with routes under `/_sandbox` to change it; not started yet."""
        return StandIn(self, port=port, tls=tls)

    def __call__(self, request: StandInRequest) -> Response:
        if request.method not in ("GET", "HEAD"):
            return Response(status=405, headers={"Allow": "GET, HEAD"}, content_type="text/plain")
        with self._lock:
            content, delivery = self._find(request)
        response = deliver(request, content, delivery)
        if response.stream is None:
            return response
        return replace(response, stream=self._counted(request.path, response.stream))

    def _find(self, request: StandInRequest) -> tuple[Content, FeedDelivery]:
        """What is at the path. A page is also found with a slash at its end."""
        path = unquote(request.path)
        if path in self._feeds:
            return self._feed_content(self._feeds[path], request.base_url)
        name = self._pages.get(path) or self._pages.get(path.rstrip("/"))
        if name is not None:
            return self._page_content(self._articles[name], request.base_url)
        file, changed_at = self._files.get(path, (NOTHING, self._start))
        content = Content(body=file.body, content_type=file.content_type, changed_at=changed_at)
        return content, file.delivery

    def _feed_content(self, kept: _KeptFeed, base: str) -> tuple[Content, FeedDelivery]:
        if base not in kept.made:
            names = list(kept.names)
            if kept.feed.articles_max is not None:
                names = names[max(len(names) - kept.feed.articles_max, 0) :]
            if kept.feed.newest_first:
                names.reverse()
            listed = (self._articles[name].article for name in names)
            kept.made[base] = Content(
                body=feed_document(kept.feed, listed, base=base),
                content_type=feed_content_type(kept.feed),
                changed_at=kept.changed_at,
            )
        return kept.made[base], kept.feed.delivery

    def _page_content(self, kept: _KeptArticle, base: str) -> tuple[Content, FeedDelivery]:
        later = kept.article.later
        if later is not None and kept.page_requests >= later.after_requests:
            self.edit_article(kept.article, **{"later": None, **later.changes})
        kept.page_requests += 1
        page = kept.article.page
        body = page.body
        if body is None:
            body = article_page(kept.article, language=kept.language, base=base)
        kind = page_content_type(kept.article)
        return Content(body=body, content_type=kind, changed_at=kept.changed_at), page.delivery

    def _assigned(self, article: Article) -> Article:
        """With a name, a path and a date; each article is an hour younger than the one before."""
        number = len(self._articles) + 1
        name = article.name
        if name == ASSIGNED:
            name = next(str(n) for n in count(number) if str(n) not in self._articles)
        path = f"/articles/{name}" if article.path == ASSIGNED else article.path
        published = article.published
        if published == ASSIGNED:
            published = self._start + timedelta(hours=number)
        return replace(article, name=name, path=path, published=published)

    def _check_path(self, article: Article) -> None:
        if self._pages.get(article.path, article.name) != article.name:
            raise ValueError(f"there is a page at {article.path} already")

    def _keep_parts(self, article: Article) -> None:
        self._pages[article.path] = article.name
        for file in article.attachments:
            if self._files.get(file.path, (None,))[0] != file:
                self.add_file(file)

    def _touch(self, kept: _KeptFeed) -> None:
        kept.changed_at = self._tick()
        kept.made.clear()

    def _tick(self) -> datetime:
        self._now += timedelta(seconds=1)
        return self._now

    def _counted(self, path: str, stream: Stream) -> Stream:
        def chunks() -> Iterator[bytes]:
            for chunk in stream.chunks():
                with self._lock:
                    self._streamed[path] += len(chunk)
                yield chunk

        return replace(stream, chunks=chunks)


def _path(feed: Feed | str) -> str:
    return feed if isinstance(feed, str) else feed.path


def _name(article: Article | str) -> str:
    return article if isinstance(article, str) else article.name
