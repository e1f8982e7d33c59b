"""Lines of runs: kept in order while the run is ours, and leaving in an order a crash cannot spoil."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from threading import Event
from typing import TypeVar

import pytest
from sqlalchemy import delete

from support import raw_statements
from support.dialects import only_on_postgresql
from support.factories import WORKER, add_worker, run_in_state, take_lead
from support.moving_clock import MovingClock
from support.threads import in_background
from tsuzuki.model.run import RunRef, StartedRun
from tsuzuki.model.states import RunState
from tsuzuki.store import logs
from tsuzuki.store.leadership import Term
from tsuzuki.store.logs import LogLine, StoredLog
from tsuzuki.store.runs import moves, ownership, progress
from tsuzuki.store.runs.progress import ProgressReport
from tsuzuki.store.schema.tables import job_runs
from tsuzuki.store.sql.database import Connection, Database

T = TypeVar("T")


@pytest.fixture
def term(database: Database) -> Term:
    add_worker(database)
    return take_lead(database)


def running(database: Database, term: Term) -> StartedRun:
    run = run_in_state(database, RunState.RUNNING, term)
    return StartedRun(id=run.id, version=run.version, epoch=term.epoch)


def write(
    database: Database, run: StartedRun, bodies: Iterable[str], *, first: int = 1
) -> list[LogLine]:
    at = database.clock.now()
    lines = [
        LogLine(seq=seq, at=at, stream="stdout", body=body)
        for seq, body in enumerate(bodies, start=first)
    ]
    with database.write() as connection:
        logs.append(connection, worker_id=WORKER, lines=[(run, line) for line in lines])
    return lines


def cancel(connection: Connection, run: StartedRun) -> bool:
    ref = RunRef(id=run.id, version=run.version)
    return bool(moves.cancel(connection, operator="me", runs=[ref]))


def end(database: Database, run: StartedRun) -> None:
    with database.write() as connection:
        assert cancel(connection, run)


def append(connection: Connection, run: StartedRun, *, seq: int = 1) -> frozenset[int]:
    line = LogLine(seq=seq, at=datetime(2026, 1, 1, tzinfo=UTC), stream="log", body="line")
    return logs.append(connection, worker_id=WORKER, lines=[(run, line)])


def elsewhere(database: Database, work: Callable[[Connection], T]) -> T:
    """In a transaction of another connection."""

    def write() -> T:
        with database.write() as connection:
            return work(connection)

    return in_background(write).result(30)


def read_elsewhere(database: Database, run_id: int) -> list[LogLine]:
    return in_background(lambda: read(database, run_id)).result(30)


def read(database: Database, run_id: int, **wanted: int) -> list[LogLine]:
    with database.read() as connection:
        return logs.read(connection, run_id=run_id, **wanted)


def stored(database: Database, after_id: int = 0, limit: int = 100) -> list[StoredLog]:
    with database.read() as connection:
        return logs.stored(
            connection, created_before=database.clock.now(), after_id=after_id, limit=limit
        )


# --- writing and reading --------------------------------------------------------------------------


def test_lines_come_back_as_they_were_written(database: Database, term: Term) -> None:
    run = running(database, term)
    at = database.clock.now()
    lines = [
        LogLine(seq=1, at=at, stream="stdout", body="hello"),
        LogLine(seq=2, at=at, stream="stderr", body=""),
        LogLine(seq=3, at=at, stream="log", body="続き 🙂\ttab 'quote' \\"),
        LogLine(seq=4, at=at, stream="stdout", body="x" * 100_000),
    ]
    with database.write() as connection:
        logs.append(connection, worker_id=WORKER, lines=[(run, line) for line in lines])
        logs.append(connection, worker_id=WORKER, lines=[])
    assert read(database, run.id) == lines


def test_what_no_database_can_hold_is_replaced(database: Database, term: Term) -> None:
    run = running(database, term)
    write(database, run, ["a\x00b", "c\ud800d"])
    assert [line.body for line in read(database, run.id)] == ["a\ufffdb", "c\ufffdd"]


def test_lines_of_several_runs_travel_in_one_batch(database: Database, term: Term) -> None:
    one, two = running(database, term), running(database, term)
    at = database.clock.now()
    lines = [
        (run, LogLine(seq=seq, at=at, stream="log", body=f"{run.id} {seq}"))
        for seq in (1, 2, 3)
        for run in (one, two)
    ]
    with database.write() as connection:
        logs.append(connection, worker_id=WORKER, lines=lines)
    for run in (one, two):
        bodies = [line.body for line in read(database, run.id)]
        assert bodies == [f"{run.id} {seq}" for seq in (1, 2, 3)]


def test_lines_of_a_run_that_is_no_longer_ours_are_dropped(database: Database, term: Term) -> None:
    ours, ended = running(database, term), running(database, term)
    end(database, ended)
    write(database, ended, ["late"])
    for stranger in (
        StartedRun(id=ours.id, version=ours.version + 1, epoch=ours.epoch),
        StartedRun(id=ours.id, version=ours.version, epoch=ours.epoch + 1),
        StartedRun(id=4711, version=1, epoch=1),
    ):
        write(database, stranger, ["not mine"])
    with database.write() as connection:
        line = LogLine(seq=1, at=database.clock.now(), stream="log", body="not mine")
        logs.append(connection, worker_id="ada", lines=[(ours, line)])
    assert read(database, ours.id) == read(database, ended.id) == []
    assert read(database, 4711) == []


def test_lines_that_are_sent_again_are_kept_once(database: Database, term: Term) -> None:
    run = running(database, term)
    first = write(database, run, ["a", "b"])
    write(database, run, ["a", "b", "c"])
    assert [line.body for line in read(database, run.id)] == ["a", "b", "c"]
    assert read(database, run.id)[:2] == first


def test_lines_are_read_by_pages_and_from_the_end(database: Database, term: Term) -> None:
    run = running(database, term)
    lines = write(database, run, [f"line {n}" for n in range(25)])
    assert read(database, run.id, limit=10) == lines[:10]
    assert read(database, run.id, after_seq=10, limit=10) == lines[10:20]
    assert read(database, run.id, after_seq=20) == lines[20:]
    assert read(database, run.id, after_seq=25) == []
    with database.read() as connection:
        assert logs.tail(connection, run_id=run.id, count=3) == lines[-3:]
        assert logs.tail(connection, run_id=run.id, count=100) == lines


# --- beside other transactions --------------------------------------------------------------------


@only_on_postgresql
def test_a_run_does_not_end_while_lines_of_it_are_being_committed(
    database: Database, term: Term
) -> None:
    run, other = running(database, term), running(database, term)
    with database.write() as connection:
        append(connection, run)
        assert not elsewhere(database, lambda another: cancel(another, run))
        assert elsewhere(database, lambda another: cancel(another, other))
    assert elsewhere(database, lambda another: cancel(another, run))
    assert len(read(database, run.id)) == 1


@only_on_postgresql
def test_no_line_is_added_to_a_run_that_is_being_ended(database: Database, term: Term) -> None:
    run, other = running(database, term), running(database, term)
    with database.write() as connection:
        assert cancel(connection, run)
        assert elsewhere(database, lambda another: append(another, run)) == {run.id}
        assert elsewhere(database, lambda another: append(another, other)) == set()
    assert elsewhere(database, lambda another: append(another, run)) == {run.id}
    assert read(database, run.id) == []
    assert len(read(database, other.id)) == 1


@only_on_postgresql
def test_lines_are_added_during_a_transaction_of_the_handler_and_still_come_before_the_end(
    database: Database, term: Term
) -> None:
    run = running(database, term)
    with database.write() as handler:
        assert ownership.lock_if_owned(handler, worker_id=WORKER, run=run)
        assert elsewhere(database, lambda another: append(another, run)) == set()
        assert len(read_elsewhere(database, run.id)) == 1
        assert not elsewhere(database, lambda another: cancel(another, run))

        def append_and_end_the_handlers_transaction(worker: Connection) -> bool:
            assert append(worker, run, seq=2) == set()
            may_commit.set()
            assert is_committed.wait(30)
            return elsewhere(database, lambda another: cancel(another, run))

        may_commit, is_committed = Event(), Event()
        canceled = in_background(
            lambda: elsewhere(database, append_and_end_the_handlers_transaction)
        )
        assert may_commit.wait(30)
    is_committed.set()
    assert not canceled.result(30)
    assert len(read(database, run.id)) == 2


@only_on_postgresql
def test_a_handler_stores_progress_while_lines_of_its_run_are_being_committed(
    database: Database, term: Term
) -> None:
    run = running(database, term)
    report = ProgressReport(run=run, processed=1, total=2, number=1)

    def report_behind_the_fence(handler: Connection) -> frozenset[int]:
        assert ownership.lock_if_owned(handler, worker_id=WORKER, run=run)
        return progress.report_progress(handler, worker_id=WORKER, reports=[report])

    with database.write() as connection:
        append(connection, run)
        assert elsewhere(database, report_behind_the_fence) == {run.id}


# --- leaving --------------------------------------------------------------------------------------


def test_runs_with_lines_are_found_in_order_by_pages(
    database: Database, clock: MovingClock, term: Term
) -> None:
    found = [running(database, term) for _ in range(5)]
    silent = running(database, term)
    for run in found:
        write(database, run, ["a", "b"])
    end(database, found[0])
    end(database, silent)  # as far as the newest that has finished
    clock.advance(60)
    ids = [log.run_id for log in stored(database)]
    assert ids == [run.id for run in found]
    assert silent.id not in ids
    assert [log.run_id for log in stored(database, limit=2)] == ids[:2]
    assert [log.run_id for log in stored(database, after_id=ids[1], limit=2)] == ids[2:4]
    assert stored(database, after_id=ids[-1]) == []


def test_only_what_finished_long_ago_is_old(
    database: Database, clock: MovingClock, term: Term
) -> None:
    live, ended = running(database, term), running(database, term)
    write(database, ended, ["a"])
    write(database, live, ["a"])
    end(database, ended)
    clock.advance(60)
    now = clock.now()
    logs_of = {log.run_id: log for log in stored(database)}
    assert logs_of[ended.id].is_old(now)
    assert not logs_of[ended.id].is_old(logs_of[ended.id].finished_at or now)
    assert not logs_of[live.id].is_old(now)


def test_lines_whose_run_is_gone_are_old(
    database: Database, clock: MovingClock, term: Term
) -> None:
    run, later = running(database, term), running(database, term)
    write(database, run, ["a"])
    end(database, run)
    end(database, later)
    raw_statements.send(database, delete(job_runs).where(job_runs.c.id == run.id))
    clock.advance(60)
    (log,) = stored(database)
    assert (log.run_id, log.run_is_gone, log.is_old(clock.now())) == (run.id, True, True)
    assert later.id > run.id


def test_a_log_moves_only_from_where_it_was_seen(
    database: Database, clock: MovingClock, term: Term
) -> None:
    live, run = running(database, term), running(database, term)
    write(database, run, ["a"])
    write(database, live, ["a"])
    end(database, run)
    clock.advance(60)
    of_live, of_run = stored(database)
    with database.write() as connection:
        assert logs.set_ref(connection, term=term, log=of_run, ref="first")
        assert not logs.set_ref(connection, term=term, log=of_run, ref="second")
        assert not logs.set_ref(connection, term=term, log=of_live, ref="too early")
    (_, again) = stored(database)
    assert again.log_ref == "first"
    others = (replace(again, version=1), replace(again, state="FAILED"))
    with database.write() as connection:
        for other in others:
            assert not logs.set_ref(connection, term=term, log=other, ref="of another run")
    with database.write() as connection:
        assert logs.set_ref(connection, term=term, log=again, ref="second")


def test_lines_are_deleted_from_the_first_on_in_steps(database: Database, term: Term) -> None:
    run, other = running(database, term), running(database, term)
    lines = write(database, run, [f"line {n}" for n in range(5)])
    write(database, other, ["stays"])

    def delete_lines(limit: int) -> int:
        with database.write() as connection:
            return logs.delete_lines(connection, term=term, run_id=run.id, limit=limit)

    assert delete_lines(2) == 2
    assert read(database, run.id) == lines[2:]
    assert [delete_lines(2), delete_lines(2), delete_lines(2)] == [2, 1, 0]
    with database.read() as connection:
        assert logs.having_lines(connection, [run.id, other.id, 4711]) == [other.id]
        assert logs.having_lines(connection, []) == []
