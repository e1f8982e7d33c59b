"""A database with the tables of feeds, a stand-in for Mastodon, and runs that post."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from support.moving_clock import MovingClock
from tsuzuki.collectors.feeds.sandbox.mastodon import Mastodon, mastodon
from tsuzuki.sandbox.server import StandIn
from tsuzuki.store.sql.database import Database

from .posting_fixture import PostingFixture, open_posting_fixture


@pytest.fixture
def clock() -> MovingClock:
    """At first the machine's time, which is in the `Date` of every answer."""
    return MovingClock(datetime.now(UTC))


@pytest.fixture
def application(clock: MovingClock) -> Mastodon:
    return mastodon(clock=clock)


@pytest.fixture
def server(application: Mastodon) -> Iterator[StandIn]:
    with StandIn(application) as server:
        yield server


@pytest.fixture
def news(
    database: Database,
    clock: MovingClock,
    application: Mastodon,
    server: StandIn,
    tmp_path: Path,
) -> Iterator[PostingFixture]:
    fixture = open_posting_fixture(database, clock, application, server, tmp_path)
    yield fixture
    for run in fixture.open_runs:
        run.posting.close()
