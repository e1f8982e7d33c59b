"""The feeds of one run, and which of them may be drawn from: not those that are closed for now.

A feed is closed while its model is parked, its account must not be posted to, its budget is used up or its posts
are at a cap. What closed it is known with the moment at which that ends.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from tsuzuki.collectors.feeds.options import FeedOptions
from tsuzuki.collectors.feeds.posting.unanswered import silence_of
from tsuzuki.collectors.feeds.queries.items import StoredItem


@dataclass(frozen=True, kw_only=True)
class RunFeed:
    """A feed of the job, as it is stored and as the job says it."""

    id: int
    name: str
    title: str
    options: FeedOptions


@dataclass(frozen=True, kw_only=True)
class Closure:
    """Why nothing of a feed is drawn. `until` is None if only another run can tell. `resumes` if a run is to be
    asked for at that moment: a cap needs none, since the job's next run comes anyway."""

    why: str
    until: datetime | None
    resumes: bool = True


class FeedSet:
    def __init__(self, feeds: Iterable[RunFeed]) -> None:
        self._feeds = {feed.id: feed for feed in feeds}
        self._closures: dict[int, Closure] = {}

    def __getitem__(self, feed_id: int) -> RunFeed:
        return self._feeds[feed_id]

    def of(self, item: StoredItem) -> RunFeed:
        """The feed of an item that was drawn from these."""
        if item.feed_id is None:
            raise ValueError(f"item {item.id} was drawn without a feed")
        return self._feeds[item.feed_id]

    @property
    def ids(self) -> list[int]:
        return list(self._feeds)

    @property
    def closures(self) -> Mapping[str, Closure]:
        """By the name of the feed."""
        return {self._feeds[feed_id].name: closure for feed_id, closure in self._closures.items()}

    def open_ids(self, now: datetime) -> list[int]:
        """The feeds that may be drawn from now."""
        for feed_id, closure in list(self._closures.items()):
            if closure.until is not None and closure.until <= now:
                del self._closures[feed_id]
        return [feed_id for feed_id in self._feeds if feed_id not in self._closures]

    def next_opening(self) -> datetime | None:
        """When the first closed feed is open again, if that is known."""
        return min((c.until for c in self._closures.values() if c.until), default=None)

    def resumes_at(self) -> datetime | None:
        """When the first feed is open again that is closed for more than a cap."""
        moments = [c.until for c in self._closures.values() if c.until and c.resumes]
        return min(moments, default=None)

    def close(self, feed_id: int, closure: Closure) -> None:
        self._closures[feed_id] = closure

    def close_model(self, model: str, closure: Closure) -> None:
        """Close every feed that asks a model."""
        self._close_where(closure, lambda options: options.model == model)

    def close_account(self, account: str, closure: Closure) -> None:
        """Close every feed that posts to an account."""
        self._close_where(closure, lambda options: options.account == account)

    def close_silent(self, accounts: Iterable[str]) -> None:
        """Close every feed that posts to an account that did not answer."""
        for account in accounts:
            self.close_account(account, Closure(why=silence_of(account), until=None))

    def close_all(self, closure: Closure) -> None:
        self._close_where(closure, lambda _options: True)

    def _close_where(self, closure: Closure, is_hit: Callable[[FeedOptions], bool]) -> None:
        for feed in self._feeds.values():
            if is_hit(feed.options):
                self.close(feed.id, closure)
