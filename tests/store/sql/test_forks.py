"""A process that forks after it has used the database: parent and child go on with connections of their own."""

import multiprocessing
import threading
from multiprocessing.connection import Connection as Pipe

import pytest
from sqlalchemy import text

from support.factories import WORKER, add_worker
from support.waiting import wait_until
from tsuzuki.store import workers
from tsuzuki.store.sql.connection_pool import pool_of
from tsuzuki.store.sql.database import Database

ROUNDS = 200
SESSION = "SELECT pg_backend_pid()"

forking = multiprocessing.get_context("fork")


def ask(database: Database, number: int) -> None:
    """Each answer must belong to its own question."""
    for one in range(number, number + ROUNDS):
        with database.read() as connection:
            assert connection.execute(text("SELECT :one"), {"one": one}).scalar_one() == one
        with database.write() as connection:
            assert workers.heartbeat(connection, WORKER) is not None


def ask_and_report(database: Database, pipe: Pipe) -> None:
    session = None
    if not database.is_sqlite:
        with database.read() as connection:
            session = connection.execute(text(SESSION)).scalar_one()
    ask(database, 1_000_000)
    pipe.send(session)


@pytest.mark.slow
def test_parent_and_child_ask_at_the_same_time(live_database: Database) -> None:
    add_worker(live_database)
    ours, theirs = forking.Pipe()
    child = forking.Process(target=ask_and_report, args=(live_database, theirs))
    child.start()
    ask(live_database, 0)
    child.join(60)
    assert child.exitcode == 0
    session = ours.recv()
    with live_database.read() as connection:
        if session is not None:
            assert connection.execute(text(SESSION)).scalar_one() != session


@pytest.mark.slow
def test_a_lock_that_another_thread_held_at_the_fork_does_not_bind_the_child(
    live_database: Database,
) -> None:
    add_worker(live_database)
    is_writing, is_done = threading.Event(), threading.Event()

    def write() -> None:
        with live_database.write() as connection:
            connection.execute(text("SELECT 1"))
            is_writing.set()
            is_done.wait(60)

    def read_in_child() -> None:
        with live_database.read() as connection:
            connection.execute(text("SELECT 1"))
        assert live_database._write_lock.acquire(timeout=5)

    writer = threading.Thread(target=write)
    writer.start()
    assert is_writing.wait(10)
    child = forking.Process(target=read_in_child)
    child.start()
    child.join(60)
    is_done.set()
    writer.join(10)
    assert child.exitcode == 0
    wait_until(lambda: pool_of(live_database.engine).checkedout() == 0, "the parent's is put back")
