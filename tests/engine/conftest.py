"""Whole engines, and a leader with the worker of its own process."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from support.engines import Engines
from support.history_checker import check_history
from support.leader_and_worker import LeaderAndWorker
from support.moving_clock import MovingClock
from tsuzuki.store.sql.database import Database


@pytest.fixture
def engines(live_database: Database) -> Iterator[Engines]:
    with ExitStack() as stack:
        yield Engines(live_database, stack)
    check_history(live_database)


@pytest.fixture
def pair(database: Database, clock: MovingClock) -> Iterator[LeaderAndWorker]:
    yield LeaderAndWorker(database, clock)
    check_history(database)
