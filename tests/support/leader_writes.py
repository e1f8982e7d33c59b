"""Every write of a leader, each with a database in which it has an effect, to test its fencing."""

from collections.abc import Callable
from datetime import timedelta
from importlib import import_module
from inspect import getmembers, isfunction, signature
from pkgutil import walk_packages
from typing import Any

from sqlalchemy import Connection, select

from support.factories import (
    WORKER,
    add_job,
    add_worker,
    new_run,
    run_in_state,
)
from support.move_functions import BY_LEADER, LONG_AGO, MOVERS, states_taken
from support.moving_clock import MovingClock
from tsuzuki import store
from tsuzuki.model.bulk import BulkResult, BulkVerb
from tsuzuki.model.run import StartedRun
from tsuzuki.model.states import Outcome, Reason, RunState, Trigger
from tsuzuki.store import bulk, events, jobs, logs, pruning, rollups, workers
from tsuzuki.store.leadership import Term
from tsuzuki.store.rollups import HourCount
from tsuzuki.store.runs import cancel_requests, moves, runs
from tsuzuki.store.schema.tables import metadata
from tsuzuki.store.sql.database import Database

Write = Callable[[Connection, Term], Any]
Prepare = Callable[[Database, MovingClock, Term], Write]


def _move(name: str) -> Prepare:
    def prepare(database: Database, clock: MovingClock, term: Term) -> Write:
        add_worker(database)
        found = run_in_state(database, min(states_taken(name)), term)
        clock.advance(LONG_AGO)
        return lambda connection, term: MOVERS[name](connection, term, found)

    return prepare


def _create(database: Database, _clock: MovingClock, _term: Term) -> Write:
    wanted = [new_run(database, add_job(database), trigger=Trigger.TIME)]
    return lambda connection, term: runs.create(connection, wanted, term=term) != [None]


def _advance_planning(database: Database, clock: MovingClock, _term: Term) -> Write:
    job_id = add_job(database)
    with database.read() as connection:
        job = jobs.get(connection, job_id)
    assert job is not None
    until = clock.now() + timedelta(hours=1)
    return lambda connection, term: jobs.advance_planning(
        connection, term=term, job=job, planned_until=until
    )


def _mark_processed(database: Database, _clock: MovingClock, _term: Term) -> Write:
    with database.write() as connection:
        event, _ = events.emit(connection, event_type="x", payload={})
    return lambda connection, term: events.mark_processed(
        connection, term=term, event_ids=[event.id]
    )


def _refresh_heartbeats(database: Database, clock: MovingClock, _term: Term) -> Write:
    worker_ids = [add_worker(database)]
    clock.advance(1)
    sent_at = clock.now()
    return lambda connection, term: workers.refresh_heartbeats(
        connection, term=term, worker_ids=worker_ids, sent_at=sent_at
    )


def _reset_future_heartbeats(database: Database, clock: MovingClock, _term: Term) -> Write:
    add_worker(database)
    clock.step(-LONG_AGO)
    return lambda connection, term: workers.reset_future_heartbeats(connection, term=term)


def _detach_silent(database: Database, clock: MovingClock, _term: Term) -> Write:
    add_worker(database)
    clock.advance(LONG_AGO)
    return lambda connection, term: workers.detach_silent(
        connection, term=term, silent_after_seconds=6.0
    )


def _record_silence(database: Database, clock: MovingClock, _term: Term) -> Write:
    add_worker(database)
    clock.advance(LONG_AGO)
    return lambda connection, term: workers.record_silence(
        connection, term=term, silent_after_seconds=6.0
    )


def _reattach_heard(database: Database, clock: MovingClock, term: Term) -> Write:
    add_worker(database)
    run_in_state(database, RunState.RUNNING, term)
    clock.advance(LONG_AGO)
    with database.write() as connection:
        workers.detach_silent(connection, term=term, silent_after_seconds=6.0)
        workers.request_confirmation(connection, worker_id=WORKER, deadline_seconds=5.0)
        workers.heartbeat(connection, WORKER)
    return lambda connection, term: workers.reattach_and_confirm(
        connection, term=term, silent_after_seconds=6.0
    )


def _mark_silent_gone(database: Database, clock: MovingClock, term: Term) -> Write:
    add_worker(database)
    clock.advance(LONG_AGO)
    with database.write() as connection:
        workers.detach_silent(connection, term=term, silent_after_seconds=6.0)
    return lambda connection, term: workers.mark_silent_gone(
        connection, term=term, silent_after_seconds=6.0
    )


def _finished_run_with_a_line(database: Database, clock: MovingClock, term: Term) -> int:
    add_worker(database)
    run = run_in_state(database, RunState.RUNNING, term)
    ours = StartedRun(id=run.id, version=run.version, epoch=term.epoch)
    line = logs.LogLine(seq=1, at=clock.now(), stream="log", body="hello")
    with database.write() as connection:
        logs.append(connection, worker_id=WORKER, lines=[(ours, line)])
        moves.cancel(connection, operator="operator-1", runs=[run])
    clock.advance(LONG_AGO)
    return run.id


def _set_ref(database: Database, clock: MovingClock, term: Term) -> Write:
    _finished_run_with_a_line(database, clock, term)
    with database.read() as connection:
        (found,) = logs.stored(connection, created_before=clock.now(), after_id=0, limit=1)
    return lambda connection, term: logs.set_ref(connection, term=term, log=found, ref="away")


def _delete_lines(database: Database, clock: MovingClock, term: Term) -> Write:
    run_id = _finished_run_with_a_line(database, clock, term)
    return lambda connection, term: logs.delete_lines(
        connection, term=term, run_id=run_id, limit=10
    )


def _mark(database: Database, clock: MovingClock, term: Term) -> Write:
    run_id = _finished_run_with_a_line(database, clock, term)
    return lambda connection, term: pruning.mark(connection, term=term, run_ids=[run_id])


def _delete_marked(database: Database, clock: MovingClock, term: Term) -> Write:
    run_id = _finished_run_with_a_line(database, clock, term)
    with database.write() as connection:
        assert pruning.mark(connection, term=term, run_ids=[run_id])
    return lambda connection, term: pruning.delete_marked(connection, term=term, run_ids=[run_id])


def _delete_gone_workers(database: Database, clock: MovingClock, term: Term) -> Write:
    mark_gone = _mark_silent_gone(database, clock, term)
    with database.write() as connection:
        assert mark_gone(connection, term)
    return lambda connection, term: pruning.delete_gone_workers(
        connection, term=term, left_before=clock.now(), limit=10
    )


def _store_hour(database: Database, clock: MovingClock, term: Term) -> Write:
    hour = rollups.hour_of(clock.now())

    def write(connection: Connection, term: Term) -> bool:
        return rollups.store_hour(
            connection,
            term=term,
            counted=hour,
            hour=hour,
            counts=[HourCount(1, Outcome.FAILED, 0, 1, 0.0)],
        )

    with database.write() as connection:
        assert rollups.close_hour(connection, term=term, counted=hour, hour=hour)
    return write


def _close_hour(_database: Database, clock: MovingClock, _term: Term) -> Write:
    hour = rollups.hour_of(clock.now())
    return lambda connection, term: rollups.close_hour(
        connection, term=term, counted=hour, hour=hour
    )


def _add_late_ends(database: Database, clock: MovingClock, term: Term) -> Write:
    hour = rollups.hour_of(clock.now())
    with database.write() as connection:
        assert rollups.close_hour(connection, term=term, counted=hour + rollups.HOUR, hour=hour)
    add_worker(database)
    run_in_state(database, RunState.FAILED, term)
    return lambda connection, term: rollups.add_late_ends(connection, term=term, limit=10)


def _delete_hours(database: Database, clock: MovingClock, term: Term) -> Write:
    write = _store_hour(database, clock, term)
    with database.write() as connection:
        assert write(connection, term)
    return lambda connection, term: rollups.delete_before(
        connection, clock.now() + timedelta(days=1), term=term
    )


def _cancel(database: Database, _clock: MovingClock, term: Term) -> Write:
    add_worker(database)
    run = run_in_state(database, RunState.RUNNING, term)
    return lambda connection, term: moves.cancel(
        connection, operator="operator-1", runs=[run], term=term
    )


def _request_cancel(database: Database, _clock: MovingClock, term: Term) -> Write:
    add_worker(database)
    run_id = run_in_state(database, RunState.RUNNING, term).id
    return lambda connection, term: cancel_requests.add(
        connection, [run_id], reason=Reason.REPLACED, requested_by=term.holder, term=term
    )


def _remove_cancel_request(database: Database, clock: MovingClock, term: Term) -> Write:
    request = _request_cancel(database, clock, term)
    with database.write() as connection:
        run_ids = request(connection, term)
    return lambda connection, term: cancel_requests.remove(connection, run_ids, term=term)


def _bulk_cancel(database: Database, term: Term) -> tuple[int, int]:
    """A confirmed one, and its run."""
    add_worker(database)
    run_id = run_in_state(database, RunState.RUNNING, term).id
    with database.write() as connection:
        bulk_id = bulk.create(
            connection,
            verb=BulkVerb.CANCEL,
            frozen={},
            ceiling_id=run_id,
            matched=1,
            actor="operator-1",
        )
        made_after = database.now(connection) - timedelta(hours=1)
        assert bulk.confirm(connection, bulk_id, actor="operator-1", made_after=made_after)
    return bulk_id, run_id


def _advance_bulk(database: Database, _clock: MovingClock, term: Term) -> Write:
    bulk_id, run_id = _bulk_cancel(database, term)
    results = [bulk.ResultOfRun(run_id, BulkResult.CANCELED)]
    return lambda connection, term: bulk.advance(
        connection, bulk_id, position=run_id, results=results, term=term
    )


def _finish_bulk(database: Database, _clock: MovingClock, term: Term) -> Write:
    bulk_id, _ = _bulk_cancel(database, term)
    return lambda connection, term: bulk.finish(connection, bulk_id, term=term)


LEADER_WRITES: dict[str, Prepare] = {
    **{f"moves.{name}": _move(name) for name in BY_LEADER},
    "moves.cancel": _cancel,
    "runs.create": _create,
    "bulk.advance": _advance_bulk,
    "bulk.finish": _finish_bulk,
    "cancel_requests.add": _request_cancel,
    "cancel_requests.remove": _remove_cancel_request,
    "jobs.advance_planning": _advance_planning,
    "events.mark_processed": _mark_processed,
    "workers.refresh_heartbeats": _refresh_heartbeats,
    "workers.reset_future_heartbeats": _reset_future_heartbeats,
    "workers.detach_silent": _detach_silent,
    "workers.record_silence": _record_silence,
    "workers.reattach_and_confirm": _reattach_heard,
    "workers.mark_silent_gone": _mark_silent_gone,
    "logs.set_ref": _set_ref,
    "logs.delete_lines": _delete_lines,
    "rollups.close_hour": _close_hour,
    "rollups.store_hour": _store_hour,
    "rollups.add_late_ends": _add_late_ends,
    "rollups.delete_before": _delete_hours,
    "pruning.mark": _mark,
    "pruning.delete_marked": _delete_marked,
    "pruning.delete_gone_workers": _delete_gone_workers,
}


def functions_that_carry_a_term() -> set[str]:
    """Found by inspecting the store. Those of `leadership` manage terms and are not fenced by one."""
    found = set()
    for module in walk_packages(store.__path__, "tsuzuki.store."):
        if ".migrations." in module.name:
            continue
        loaded = import_module(module.name)
        found |= {
            f"{module.name.rpartition('.')[2]}.{name}"
            for name, function in getmembers(loaded, isfunction)
            if function.__module__ == loaded.__name__
            and not name.startswith("_")
            and "term" in signature(function).parameters
        }
    return {name for name in found if not name.startswith("leadership.")}


def everything(database: Database) -> dict[str, list[Any]]:
    """Every row of every table, to see whether anything changed."""
    with database.read() as connection:
        return {
            name: sorted(map(tuple, connection.execute(select(table))), key=repr)
            for name, table in metadata.tables.items()
        }
