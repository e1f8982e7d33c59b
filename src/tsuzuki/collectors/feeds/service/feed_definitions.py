"""Feeds as people see them: what the jobs say, joined with what the last fetches gave.

A feed is a key of its job, so it is added and removed where the job is defined. It is named `name`, or `job/name`
where two jobs have one of the same name.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from tsuzuki.collectors.collector import ServiceContext
from tsuzuki.collectors.feeds.options import FeedOptions, FeedsOptions
from tsuzuki.collectors.feeds.queries import feeds, item_lists
from tsuzuki.collectors.feeds.queries.feeds import StoredFeed
from tsuzuki.collectors.feeds.queries.item_lists import ItemCounts
from tsuzuki.config import Key
from tsuzuki.model.errors import Conflict, NotFound, UsageError
from tsuzuki.model.suggestion import did_you_mean
from tsuzuki.services.jobs import JobView

HANDLER = "feeds"


class FeedHealth(StrEnum):
    """How a feed fares."""

    NEW = "new"
    """Not fetched yet."""

    OK = "ok"
    FAILING = "failing"
    """The last fetch gave nothing; `failing_since` says since when."""

    SILENT = "silent"
    """It is fetched, but has had nothing new for longer than its rhythm or `silent_after` allows."""

    ENDED = "ended"
    """Its server says that it is gone for good."""

    REMOVED = "removed"
    """No job has it any more; its items are kept."""


@dataclass(frozen=True, kw_only=True)
class FeedView:
    """A feed of a job. `stored` is None before its first fetch, `options` once no job has it."""

    job: str
    name: str
    options: FeedOptions | None
    stored: StoredFeed | None
    health: FeedHealth
    next_at: datetime | None
    counts: ItemCounts

    @property
    def label(self) -> str:
        return f"{self.job}/{self.name}"

    @property
    def title(self) -> str:
        return (self.stored.title if self.stored else None) or self.name

    def as_dict(self) -> dict[str, Any]:
        stored = self.stored
        return {
            "job": self.job,
            "name": self.name,
            "title": stored.title if stored else None,
            "url": self.options.url if self.options else stored and stored.url,
            "moved_to": stored and stored.moved_to,
            "health": self.health,
            "last_good_at": stored and stored.good_at,
            "last_new_at": stored and stored.new_at,
            "failing_since": stored and stored.failing_since,
            "failures": stored.failures if stored else 0,
            "error": stored and stored.error,
            "not_before": stored and stored.not_before,
            "next_at": self.next_at,
            **vars(self.counts),
        }


class FeedDefinitions:
    def __init__(self, context: ServiceContext) -> None:
        self._context = context
        self._database = context.database

    def require_job(self, job_name: str) -> JobView:
        """A feeds job of the file or the database. Raises `NotFound` for any other."""
        view = self._context.jobs.get(job_name)
        if view.spec.handler != HANDLER:
            raise NotFound(
                f"{job_name!r} is no feeds job: its type is {view.spec.handler}",
                hint=f"Run it with: tsuzuki job run {job_name}",
                code="not_a_feeds_job",
            )
        return view

    def jobs(self) -> list[JobView]:
        return [view for view in self._context.jobs.find() if view.spec.handler == HANDLER]

    def find(self, job_name: str | None = None, *, counted: bool = False) -> list[FeedView]:
        """Every feed, or those of one job; those that no job has any more last. `counted` if their items are."""
        views = [self.require_job(job_name)] if job_name else self.jobs()
        with self._database.read() as connection:
            stored = {(one.job_name, one.name): one for one in feeds.find(connection, job_name)}
            ids = [one.id for one in stored.values()] if counted else []
            counts = item_lists.counts(connection, ids) if ids else {}
            now = self._database.now(connection)
        found = [
            _view(view, name, options, stored.pop((view.name, name), None), counts, now)
            for view in views
            for name, options in options_of(view).feeds.items()
        ]
        return found + [_removed(one, counts) for one in stored.values()]

    def get(self, name: str, *, counted: bool = False) -> FeedView:
        """A feed by `name` or `job/name`. Raises `NotFound`, or `UsageError` if there are several."""
        views = self.find(counted=counted)
        hits = [view for view in views if name in (view.name, view.label)]
        if len(hits) == 1:
            return hits[0]
        if hits:
            raise UsageError(
                f"there are {len(hits)} feeds {name!r}",
                hint="Say which: " + ", ".join(view.label for view in hits),
                code="feed_ambiguous",
            )
        raise NotFound(
            f"there is no feed {name!r}",
            hint=did_you_mean(name, [view.name for view in views]) + "See: tsuzuki feeds ls",
            code="feed_unknown",
        )

    def add(
        self,
        job_name: str,
        name: str,
        settings: Mapping[str, Any],
        *,
        schedule: Mapping[str, Any],
        dry_run: bool = False,
    ) -> JobView:
        """Add a feed to a job; the job is made if there is none. Raises `Conflict` if it has one of that name."""
        known = {view.name: view for view in self._context.jobs.find()}
        if job_name not in known:
            body = {"type": HANDLER, **schedule, "feeds": {name: dict(settings)}}
            return self._context.jobs.add(job_name, body, dry_run=dry_run)
        view = self.require_job(job_name)
        if name in options_of(view).feeds:
            raise Conflict(
                f"the job {job_name!r} has a feed {name!r} already",
                hint="Choose another name, or edit that one in the file.",
                code="feed_exists",
            )
        changes: dict[Key, Any] = {("feeds", name): dict(settings)}
        return self._context.jobs.update(job_name, changes, dry_run=dry_run)

    def remove(self, name: str) -> FeedView:
        """Take a feed out of its job. Its items stay, so that they are known if it comes back."""
        feed = self.get(name)
        if feed.options is None:
            raise Conflict(f"the feed {name!r} was removed before", code="feed_removed")
        if len(options_of(self.require_job(feed.job)).feeds) == 1:
            raise Conflict(
                f"{name!r} is the only feed of the job {feed.job!r}",
                hint=f"Remove the job: tsuzuki job rm {feed.job}",
                code="feed_last",
            )
        self._context.jobs.update(feed.job, {}, removals=[("feeds", feed.name)])
        return feed


def options_of(view: JobView) -> FeedsOptions:
    return FeedsOptions.model_validate(view.spec.options)


def _view(
    view: JobView,
    name: str,
    options: FeedOptions,
    stored: StoredFeed | None,
    counts: Mapping[int, ItemCounts],
    now: datetime,
) -> FeedView:
    return FeedView(
        job=view.name,
        name=name,
        options=options,
        stored=stored,
        health=health_of(options, stored, now=now),
        next_at=view.next_at,
        counts=counts.get(stored.id, ItemCounts()) if stored else ItemCounts(),
    )


def _removed(stored: StoredFeed, counts: Mapping[int, ItemCounts]) -> FeedView:
    return FeedView(
        job=stored.job_name,
        name=stored.name,
        options=None,
        stored=stored,
        health=FeedHealth.REMOVED,
        next_at=None,
        counts=counts.get(stored.id, ItemCounts()),
    )


def health_of(options: FeedOptions, stored: StoredFeed | None, *, now: datetime) -> FeedHealth:
    """How a feed fares now."""
    if stored is None or stored.tried_at is None:
        return FeedHealth.NEW
    if stored.ended_at is not None:
        return FeedHealth.ENDED
    if stored.failing_since is not None:
        return FeedHealth.FAILING
    last_new = stored.new_at or stored.first_good_at
    silent = options.silent_after
    if silent is not None and last_new is not None and now - last_new > timedelta(seconds=silent):
        return FeedHealth.SILENT
    return FeedHealth.OK
