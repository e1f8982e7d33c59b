"""The database follows the file as it is, never as it was a moment ago."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from support.databases import opened
from tsuzuki.config import Configuration, load_configuration
from tsuzuki.services.jobs import Jobs, SyncState
from tsuzuki.store.sql.database import Database


@pytest.fixture
def other_database(database_url: str) -> Iterator[Database]:
    """The same database, as another process has it open."""
    with opened(database_url) as database:
        yield database


def jobs_of(database: Database, reload: Callable[[], Configuration]) -> Jobs:
    return Jobs(database=database, reload=reload, kinds={}, actor="test")


def test_a_job_added_by_another_process_meanwhile_is_not_removed(
    live_database: Database, other_database: Database, tmp_path: Path
) -> None:
    (tmp_path / "tsuzuki.yaml").write_text("jobs: {}\n")
    read = partial(load_configuration, environ={}, cwd=tmp_path)
    theirs = jobs_of(other_database, read)
    waiting = ["theirs"]

    def read_while_others_act() -> Configuration:
        configuration = read()
        while waiting:
            theirs.add(waiting.pop(), {"command": "x"})
        return configuration

    jobs_of(live_database, read_while_others_act).apply()
    (view,) = theirs.find()
    assert (view.name, view.sync_state) == ("theirs", SyncState.APPLIED)
