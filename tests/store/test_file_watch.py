"""Being told that a file was written to, without looking at it."""

import os
import threading
from contextlib import closing
from pathlib import Path

import pytest

from support.databases import opened
from support.makers import WORKER, add_job, add_worker, spec
from tsuzuki.store import notices, workers
from tsuzuki.store.database import Database
from tsuzuki.store.file_watch import watch
from tsuzuki.store.notices import SqliteListener

LONG_SECONDS = 30.0


@pytest.fixture
def dialect() -> str:
    return "sqlite"


def test_a_write_is_told_once_and_silence_is_not(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"")
    ear = watch([path])
    assert ear is not None
    assert not ear.wait(0)
    with path.open("ab") as stream:
        os.pwrite(stream.fileno(), b"one", 0)
    assert ear.wait(LONG_SECONDS)
    assert not ear.wait(0)
    ear.close()
    ear.close()


def test_many_writes_are_one_change(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"")
    ear = watch([path, tmp_path / "not there"])
    assert ear is not None
    for number in range(100):
        path.write_bytes(b"x" * number)
    assert ear.wait(LONG_SECONDS)
    assert not ear.wait(0)
    ear.close()


def test_where_there_is_nothing_to_watch_one_has_to_look(tmp_path: Path) -> None:
    assert watch([tmp_path / "not there"]) is None


def test_a_commit_is_heard_that_takes_longer_than_its_first_write(
    live_database: Database, database_url: str
) -> None:
    """The kernel tells of the write, not of the commit; nobody tells of that."""
    with opened(database_url) as elsewhere, closing(notices.listen(live_database)) as listener:
        assert isinstance(listener, SqliteListener)
        commit = threading.Timer(0.02, add_job, (elsewhere, spec("new")))

        class WrittenTo:
            def wait(self, seconds: float) -> bool:
                commit.start()
                return True

            def close(self) -> None: ...

        listener._watch = WrittenTo()  # type: ignore[assignment]
        assert listener.wait(LONG_SECONDS) == {notices.Audience.LEADER}
        commit.join()


def test_a_heartbeat_is_nobody_s_news(live_database: Database, database_url: str) -> None:
    with opened(database_url) as elsewhere, closing(notices.listen(live_database)) as listener:
        add_worker(elsewhere)
        with elsewhere.write() as connection:
            workers.beat(connection, WORKER)
        assert not listener.wait(LONG_SECONDS)
        with elsewhere.write() as connection:
            notices.notify(connection, notices.Audience.WORKERS)
        heard: set[notices.Audience] = set()
        while not heard:
            heard.update(listener.wait(LONG_SECONDS))
        assert heard == {notices.Audience.WORKERS}
