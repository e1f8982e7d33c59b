"""A leader's term, a worker, and a check of the history of all runs."""

from collections.abc import Iterator

import pytest

from support.factories import add_worker, take_lead
from support.history_checker import check_history
from tsuzuki.store.leadership import Term
from tsuzuki.store.sql.database import Database

LEASE_SECONDS = 10_000_000.0
"""Longer than any test advances the clock."""


@pytest.fixture
def term(database: Database) -> Term:
    return take_lead(database, lease_seconds=LEASE_SECONDS)


@pytest.fixture
def worker(database: Database) -> str:
    return add_worker(database)


@pytest.fixture
def history_is_valid(database: Database) -> Iterator[None]:
    """After the test, the history of all runs is checked for violated invariants."""
    yield
    check_history(database)
