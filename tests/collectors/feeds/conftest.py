"""A database with the tables of feeds, a feed site, and fetches of a job from the one into the other."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from collectors.feeds.fetching_fixture import SITE_START, Fetching, open_fetching
from support.shared_document_processes import share_document_processes
from tsuzuki.collectors.feeds.sandbox.feed_site import FeedSite
from tsuzuki.collectors.feeds.tables import COMPONENT
from tsuzuki.sandbox.server import StandIn
from tsuzuki.store.schema.migrate import ENGINE, Component
from tsuzuki.store.sql.database import Database

from .feeds_fixture import FeedsFixture, opened_feeds_fixture


@pytest.fixture
def components() -> Sequence[Component]:
    return (ENGINE, COMPONENT)


@pytest.fixture
def feeds_database(database: Database) -> Database:
    """One with the tables of feeds."""
    return database


@pytest.fixture
def site() -> FeedSite:
    return FeedSite(start=SITE_START)


@pytest.fixture
def server(site: FeedSite) -> Iterator[StandIn]:
    with site.serve() as server:
        yield server


@pytest.fixture
def fetching(
    feeds_database: Database,
    site: FeedSite,
    server: StandIn,
    monkeypatch: pytest.MonkeyPatch,
) -> Fetching:
    share_document_processes(monkeypatch)
    return open_fetching(feeds_database, site, server)


@pytest.fixture
def feeds_fixture(
    feeds_database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[FeedsFixture]:
    share_document_processes(monkeypatch)
    with opened_feeds_fixture(feeds_database, tmp_path) as fixture:
        yield fixture
