"""A worker for every test here; whatever it did, its history must add up."""

from collections.abc import Iterator

import pytest

from support.history_checker import check_history
from support.moving_clock import MovingClock
from support.worker_bench import Bench
from tsuzuki.store.sql.database import Database


@pytest.fixture
def bench(database: Database, clock: MovingClock) -> Iterator[Bench]:
    yield Bench(database, clock)
    check_history(database)
