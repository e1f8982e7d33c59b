"""The service of runs on a database of its own, and a leader's term with one worker."""

import pytest

from support.factories import add_worker, take_lead
from tsuzuki.services.runs import Runs
from tsuzuki.store.leadership import Term
from tsuzuki.store.sql.database import Database


@pytest.fixture
def run_service(database: Database) -> Runs:
    return Runs(database=database, actor="ada")


@pytest.fixture
def term(database: Database) -> Term:
    add_worker(database)
    return take_lead(database)
