"""A worker for every test here; afterwards the history of all runs is checked."""

from collections.abc import Iterator

import pytest

from support.history_checker import check_history
from support.moving_clock import MovingClock
from support.worker_fixture import WorkerFixture
from tsuzuki.store.sql.database import Database


@pytest.fixture
def fixture(database: Database, clock: MovingClock) -> Iterator[WorkerFixture]:
    yield WorkerFixture(database, clock)
    check_history(database)
