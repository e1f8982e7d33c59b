"""The request for a feed: where it goes, which headers it has, and whether it asks only for what is new."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from tsuzuki.collectors.feeds.options import FeedOptions, FeedsSection
from tsuzuki.collectors.feeds.queries.feeds import StoredFeed
from tsuzuki.model.suggestion import did_you_mean
from tsuzuki.outward.errors import SourceRefused

ACCEPT = (
    "application/rss+xml, application/atom+xml, application/rdf+xml, application/xml;q=0.9, "
    "text/xml;q=0.9, */*;q=0.1"
)
SLACK_MAX_SECONDS = 60.0
"""A run is a little early or late; it must not miss a feed that is due with it."""


@dataclass(frozen=True, kw_only=True)
class FeedRequest:
    """`validators` are the feed's own words by which it may answer that nothing changed; `is_conditional` tells
    whether they are sent."""

    feed: StoredFeed
    options: FeedOptions
    headers: Mapping[str, str] = field(default_factory=dict)
    sensitive_headers: Mapping[str, str] = field(default_factory=dict)
    validators: Mapping[str, str] = field(default_factory=dict)
    is_conditional: bool = False

    @property
    def address(self) -> str:
        return self.feed.address

    @property
    def host(self) -> str:
        return urlsplit(self.address).hostname or ""

    @property
    def bytes_max(self) -> int:
        return self.options.download_megabytes * 1024 * 1024


def is_due(feed: StoredFeed, options: FeedOptions, *, now: datetime) -> bool:
    """Whether to ask the feed now: not if it has ended, wants a pause, or was asked recently."""
    if feed.ended_at is not None or (feed.not_before is not None and now < feed.not_before):
        return False
    if options.fetch_every is None or feed.tried_at is None:
        return True
    slack = min(options.fetch_every / 10, SLACK_MAX_SECONDS)
    return now >= feed.tried_at + timedelta(seconds=options.fetch_every - slack)


def build_request(
    feed: StoredFeed, options: FeedOptions, section: FeedsSection, *, now: datetime
) -> FeedRequest:
    """Raises `SourceRefused` if the feed names request settings that there are not."""
    headers, sensitive = headers_of(feed.name, options, section)
    has_moved = feed.address != feed.url and _origin(feed.address) != _origin(feed.url)
    validators = _validators(feed)
    return FeedRequest(
        feed=feed,
        options=options,
        headers=headers,
        sensitive_headers={} if has_moved else sensitive,
        validators=validators,
        is_conditional=bool(validators) and not _is_full_due(feed, options, now),
    )


def _is_full_due(feed: StoredFeed, options: FeedOptions, now: datetime) -> bool:
    """Now and then the whole is asked for: a server may be wrong about what did not change."""
    if feed.full_at is None or feed.body_hash is None:
        return True
    return now >= feed.full_at + timedelta(seconds=options.full_fetch_every)


def _validators(feed: StoredFeed) -> dict[str, str]:
    """As the server wrote them: a date that was parsed and written again may not be recognised."""
    if not feed.is_conditional:
        return {}
    known = {"if-none-match": feed.etag, "if-modified-since": feed.last_modified}
    return {name: value for name, value in known.items() if value}


def headers_of(
    feed_name: str, options: FeedOptions, section: FeedsSection
) -> tuple[dict[str, str], dict[str, str]]:
    """Open headers, and those with secrets, which only the origin in the job's file gets. Raises `SourceRefused`
    if the feed names request settings that there are not."""
    if options.request is None:
        return {}, {}
    settings = section.requests.get(options.request)
    if settings is None:
        raise SourceRefused(
            f"feed {feed_name} uses request settings {options.request!r}, which are not defined",
            hint=did_you_mean(options.request, section.requests)
            + "Add them to `requests` of the section `feeds`.",
            code="request_settings",
        )
    open_headers = {"user-agent": settings.user_agent} if settings.user_agent else {}
    sensitive = {name: value.get_secret_value() for name, value in settings.headers.items()}
    if settings.cookies:
        pairs = (f"{name}={value.get_secret_value()}" for name, value in settings.cookies.items())
        sensitive["cookie"] = "; ".join(pairs)
    return open_headers, sensitive


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port
