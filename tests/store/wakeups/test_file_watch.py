"""File watch: a touch wakes the watcher, without a poll."""

import os
from contextlib import closing
from pathlib import Path

import pytest

from support.databases import opened
from support.factories import WORKER, add_worker
from tsuzuki.store import workers
from tsuzuki.store.sql.database import Database
from tsuzuki.store.wakeups import channels, listeners
from tsuzuki.store.wakeups.channels import WakeupChannel
from tsuzuki.store.wakeups.file_watch import touch, watch
from tsuzuki.store.wakeups.listeners import SqliteListener

LONG_SECONDS = 30.0


@pytest.fixture
def dialect() -> str:
    return "sqlite"


def test_a_touch_wakes_once_and_a_write_does_not(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"")
    watched = watch([path])
    assert watched is not None
    assert not watched.wait(0)
    with path.open("ab") as stream:
        os.pwrite(stream.fileno(), b"one", 0)
    assert not watched.wait(0)
    touch(path)
    assert watched.wait(LONG_SECONDS)
    assert not watched.wait(0)
    watched.close()
    watched.close()


def test_many_touches_are_one(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"")
    watched = watch([path, tmp_path / "not there"])
    assert watched is not None
    for _ in range(100):
        touch(path)
    assert watched.wait(LONG_SECONDS)
    assert not watched.wait(0)
    watched.close()


def test_where_there_is_nothing_to_watch_one_has_to_look(tmp_path: Path) -> None:
    assert watch([tmp_path / "not there"]) is None


def test_what_cannot_be_touched_is_left_alone(tmp_path: Path) -> None:
    touch(tmp_path / "not there")
    assert not (tmp_path / "not there").exists()


def test_a_commit_wakes_when_it_is_visible(live_database: Database, database_url: str) -> None:
    """One event, and a reader that it wakes sees what was committed: no second read is needed."""
    with opened(database_url) as elsewhere, closing(listeners.listen(live_database)) as listener:
        assert isinstance(listener, SqliteListener)
        assert listener._watch is not None
        add_worker(elsewhere)  # Opening the log touches it, too.
        listener.wait(LONG_SECONDS)
        with elsewhere.write() as connection:
            channels.notify(connection, WakeupChannel.LEADER)
            assert not listener._watch.wait(0)
        assert listener._watch.wait(LONG_SECONDS)
        listener._watch.close()
        listener._watch = None
        assert listener.wait(0) == {WakeupChannel.LEADER}


def test_a_heartbeat_notifies_no_channel(live_database: Database, database_url: str) -> None:
    with opened(database_url) as elsewhere, closing(listeners.listen(live_database)) as listener:
        add_worker(elsewhere)
        with elsewhere.write() as connection:
            workers.heartbeat(connection, WORKER)
        assert not listener.wait(LONG_SECONDS)
        with elsewhere.write() as connection:
            channels.notify(connection, WakeupChannel.WORKERS)
        heard: set[WakeupChannel] = set()
        while not heard:
            heard.update(listener.wait(LONG_SECONDS))
        assert heard == {WakeupChannel.WORKERS}
