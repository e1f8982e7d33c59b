"""Feeds as people see them: what the jobs say, joined with what the last fetches gave.

A feed is a key of its job, so it is added and removed where the job is defined: in the file, or in the database
against the version that was read. It is named `name`, or `job/name` where two jobs have one of the same name.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tsuzuki.collectors.feeds.fetching.health import FeedHealth, HealthState, health_of
from tsuzuki.collectors.feeds.options import FeedOptions, FeedsOptions, FeedsSection
from tsuzuki.collectors.feeds.queries import feeds, item_lists
from tsuzuki.collectors.feeds.queries.feeds import StoredFeed
from tsuzuki.collectors.feeds.queries.item_lists import ItemCounts
from tsuzuki.collectors.feeds.service.feed_setup import missing_settings, notes_for
from tsuzuki.config import Key
from tsuzuki.model.errors import ConfigurationError, Conflict, NotFound, UsageError
from tsuzuki.model.job import JobSource
from tsuzuki.model.suggestion import did_you_mean
from tsuzuki.services.jobs import JobView
from tsuzuki.wiring.collector import ServiceContext

if TYPE_CHECKING:
    from tsuzuki.collectors.feeds.fetching.look import FeedLook

HANDLER = "feeds"


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
            "health": self.health.state,
            "health_since": self.health.since,
            "last_good_at": stored and stored.good_at,
            "last_new_at": stored and stored.new_at,
            "failing_since": stored and stored.failing_since,
            "failures": stored.failures if stored else 0,
            "error": stored and stored.error,
            "not_before": stored and stored.not_before,
            "next_at": self.next_at,
            **vars(self.counts),
        }


NO_FEED = FeedView(
    job="",
    name="",
    options=None,
    stored=None,
    health=FeedHealth(state=HealthState.NEW),
    next_at=None,
    counts=ItemCounts(),
)
"""Stands for the feed of an item that none has listed."""


@dataclass(frozen=True, kw_only=True)
class FeedSetup:
    """Sentences: what is missing before a feed's items can be posted, and what else its owner should know."""

    missing: list[str]
    notes: list[str]


class FeedDefinitions:
    def __init__(self, context: ServiceContext) -> None:
        self._context = context
        self._database = context.database

    def require_job(self, job_name: str) -> JobView:
        """A feeds job of the file or the database. Raises `NotFound` for any other."""
        view = self._context.jobs.get(job_name)
        if view.spec.handler != HANDLER:
            raise NotFound(
                f"{job_name!r} is not a feeds job: its type is {view.spec.handler}",
                hint=f"Run it with: tsuzuki job run {job_name}",
                code="not_a_feeds_job",
            )
        return view

    def jobs(self) -> list[JobView]:
        return self._context.jobs.find_by_handler(HANDLER)

    def find(self, job_name: str | None = None, *, counted: bool = False) -> list[FeedView]:
        """Every feed, or those of one job; those that no job has any more last. `counted` if their items are, which
        also tells whether a feed is silent for longer than its rhythm."""
        views = [self.require_job(job_name)] if job_name else self.jobs()
        with self._database.read() as connection:
            stored = {(one.job_name, one.name): one for one in feeds.find(connection, job_name)}
            ids = [one.id for one in stored.values()] if counted else []
            figures = _Figures(
                now=self._database.now(connection),
                counts=item_lists.counts(connection, ids) if ids else {},
                dates={feed_id: feeds.newest_dates(connection, feed_id) for feed_id in ids},
            )
        found = [
            _view(view, name, stored.pop((view.name, name), None), figures)
            for view in views
            for name in options_of(view).feeds
        ]
        return found + [_removed(one, figures) for one in stored.values()]

    def get(self, name: str, *, counted: bool = False) -> FeedView:
        """A feed by `name` or `job/name`. Raises `NotFound`, or `UsageError` if there are several."""
        views = self.find(counted=counted)
        hits = [view for view in views if name in (view.name, view.label)]
        if len(hits) == 1:
            return hits[0]
        if hits:
            raise UsageError(
                f"{len(hits)} feeds are named {name!r}",
                hint="Choose one: " + ", ".join(view.label for view in hits),
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
        new_job_source: JobSource = JobSource.FILE,
        dry_run: bool = False,
    ) -> JobView:
        """Add a feed to a job; the job is made if there is none. Raises `Conflict` if it has one of that name."""
        jobs = self._context.jobs
        if job_name not in {view.name for view in jobs.find()}:
            body = {"type": HANDLER, **schedule, "feeds": {name: dict(settings)}}
            if new_job_source is JobSource.FILE:
                return jobs.add(job_name, body, dry_run=dry_run)
            return jobs.preview(job_name, body) if dry_run else jobs.create(job_name, body)
        view = self.require_job(job_name)
        if name in options_of(view).feeds:
            raise Conflict(
                f"job {job_name!r} already has a feed {name!r}",
                hint="Choose another name, or edit the existing feed in the file.",
                code="feed_exists",
            )
        if view.source is JobSource.DATABASE:
            return self._edit(view, lambda feeds: {**feeds, name: dict(settings)}, dry_run=dry_run)
        changes: dict[Key, Any] = {("feeds", name): dict(settings)}
        return jobs.update(job_name, changes, dry_run=dry_run)

    def _edit(
        self,
        view: JobView,
        change: Callable[[dict[str, Any]], dict[str, Any]],
        *,
        dry_run: bool = False,
    ) -> JobView:
        """Change the feeds of a job of the database. Raises `VersionMismatch` if it was changed since `view`."""
        jobs = self._context.jobs
        body = jobs.body(view.name)
        body = {**body, "feeds": change(body["feeds"])}
        if dry_run:
            return jobs.preview(view.name, body)
        return jobs.edit(view.name, body, version=view.job.version if view.job else None)

    def setup(self, view: JobView, name: str) -> FeedSetup:
        """What a feed of a job still needs, and what its owner should know."""
        options = options_of(view).feeds[name]
        try:
            section = self._context.section(FeedsSection)
        except ConfigurationError as problem:
            hint = f" {problem.hint}" if problem.hint else ""
            return FeedSetup(missing=[f"A run would fail: {problem.message}.{hint}"], notes=[])
        return FeedSetup(
            missing=list(missing_settings(section, options)),
            notes=list(notes_for(section, options)),
        )

    def look(self, view: JobView, name: str) -> "FeedLook | None":
        """What a feed of a job lists now, before anything is stored; None if the section of the file is wrong, which
        `setup` reports."""
        # The HTTP client is part of the extra, and this service is loaded without it too.
        from tsuzuki.collectors.feeds.fetching.look import look_at  # noqa: PLC0415

        options = options_of(view).feeds[name]
        try:
            section = self._context.section(FeedsSection)
        except ConfigurationError:
            return None
        feed = StoredFeed.never_fetched(view.name, name, options.url)
        return look_at(feed, options, section, self._database.clock)

    def remove(self, name: str) -> FeedView:
        """Take a feed out of its job. Its items stay, so that they are known if it comes back."""
        feed = self.get(name)
        if feed.options is None:
            raise Conflict(f"feed {name!r} was already removed", code="feed_removed")
        view = self.require_job(feed.job)
        if len(options_of(view).feeds) == 1:
            raise Conflict(
                f"{name!r} is the only feed of job {feed.job!r}",
                hint=f"Delete the job instead: tsuzuki job rm {feed.job}",
                code="feed_last",
            )
        if view.source is JobSource.DATABASE:
            self._edit(view, lambda feeds: {key: feeds[key] for key in feeds if key != feed.name})
        else:
            self._context.jobs.update(feed.job, {}, removals=[("feeds", feed.name)])
        return feed


def options_of(view: JobView) -> FeedsOptions:
    return FeedsOptions.model_validate(view.spec.options)


def _view(view: JobView, name: str, stored: StoredFeed | None, figures: "_Figures") -> FeedView:
    options = options_of(view).feeds[name]
    return FeedView(
        job=view.name,
        name=name,
        options=options,
        stored=stored,
        health=figures.health(stored, options),
        next_at=view.next_at,
        counts=figures.counts_of(stored),
    )


def _removed(stored: StoredFeed, figures: "_Figures") -> FeedView:
    return FeedView(
        job=stored.job_name,
        name=stored.name,
        options=None,
        stored=stored,
        health=figures.health(stored, None),
        next_at=None,
        counts=figures.counts_of(stored),
    )


@dataclass(frozen=True, kw_only=True)
class _Figures:
    """What is counted of the items of feeds, by the ids of the feeds."""

    now: datetime
    counts: Mapping[int, ItemCounts]
    dates: Mapping[int, Sequence[datetime]]

    def counts_of(self, stored: StoredFeed | None) -> ItemCounts:
        return self.counts.get(stored.id, ItemCounts()) if stored else ItemCounts()

    def health(self, stored: StoredFeed | None, options: FeedOptions | None) -> FeedHealth:
        if stored is None:
            return FeedHealth(state=HealthState.NEW)
        return health_of(stored, options, self.dates.get(stored.id, ()), now=self.now)
