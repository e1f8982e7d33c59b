"""Carries a confirmed bulk action out, as a run of the engine: page by page, oldest run first.

Each page is one transaction behind the fence of that run: the moves, what became of each run, the position and
the lines of the audit log. A run that is lost is retried, and goes on at the position.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tsuzuki.engine.run_context import RunContext
from tsuzuki.model.bulk import BulkResult, BulkVerb
from tsuzuki.model.run import Run, new_retry
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.model.states import RunState
from tsuzuki.store import audit, bulk
from tsuzuki.store.bulk import BulkAction, ResultOfRun
from tsuzuki.store.runs import moves, runs
from tsuzuki.store.sql.database import Connection, Database
from tsuzuki.store.wakeups import channels

PAGE = 200
ROUNDS_MAX = 5
"""How often a page is read again for runs that moved while it was carried out."""


def bulk_handler(database: Database) -> Callable[[RunContext], Any]:
    def carry_out(run: RunContext) -> dict[str, Any]:
        bulk_id = int(run.arguments["bulk"])
        while True:
            run.raise_if_cancelled()
            with run.transaction() as connection:
                action = bulk.take(connection, bulk_id, run_id=run.id)
                if action is not None:
                    _carry_out_page(connection, database, action)
                action = bulk.get(connection, bulk_id)
            if action is None:
                return {"bulk": bulk_id, "done": 0}
            run.progress(action.done, action.matched)
            if action.finished_at is not None or action.stopped_at is not None:
                return {"bulk": bulk_id, "done": action.done}

    return carry_out


def _carry_out_page(connection: Connection, database: Database, action: BulkAction) -> None:
    wanted = replace(RunFilter.from_dict(action.filter), limit=PAGE)
    page = runs.page_of(connection, wanted, after_id=action.position, up_to_id=action.ceiling_id)
    if not page:
        bulk.finish(connection, action.id)
        return
    actor = action.confirmed_by or action.created_by
    results = (
        _cancel(connection, page, actor)
        if action.verb is BulkVerb.CANCEL
        else _retry(connection, database, page)
    )
    before = {run.id: run.state for run in page}
    for result in results:
        _note(connection, action, actor, result, before[result.run_id])
    bulk.advance(connection, action.id, position=page[-1].id, results=results)


def _cancel(connection: Connection, page: list[Run], actor: str) -> list[ResultOfRun]:
    """A run that moves at the same moment is read again: it is canceled where it is by then."""
    left = page
    canceled: set[int] = set()
    concerned: set[str] = set()
    for _round in range(ROUNDS_MAX):
        concerned.update(*map(channels.concerned_by_cancel, left))
        canceled |= moves.cancel(connection, operator=actor, runs=[run.ref for run in left])
        missed = [run.id for run in left if run.id not in canceled]
        left = [run for run in runs.get_many(connection, missed) if not run.state.is_final]
        if not left:
            break
    channels.notify(connection, *concerned)
    return [
        ResultOfRun(run.id, BulkResult.CANCELED if run.id in canceled else BulkResult.ENDED_BEFORE)
        for run in page
    ]


def _retry(connection: Connection, database: Database, page: list[Run]) -> list[ResultOfRun]:
    now = database.now(connection)
    new_ids = runs.create(connection, [new_retry(run, scheduled_for=now) for run in page])
    return [
        ResultOfRun(run.id, BulkResult.RETRIED_BEFORE)
        if new_id is None
        else ResultOfRun(run.id, BulkResult.RETRIED, new_id)
        for run, new_id in zip(page, new_ids, strict=True)
    ]


def _note(
    connection: Connection,
    action: BulkAction,
    actor: str,
    result: ResultOfRun,
    before: RunState,
) -> None:
    """The line that the same act on one run alone would leave, with the bulk action beside it."""
    if result.result is BulkResult.CANCELED:
        name, after = "run.cancel", {"state": RunState.CANCELED, "bulk": action.id}
    elif result.result is BulkResult.RETRIED:
        name = "run.retry"
        after = {"state": before, "retried_as": result.new_run_id, "bulk": action.id}
    else:
        return
    audit.record(
        connection,
        actor=actor,
        action=name,
        object_type="run",
        object_id=str(result.run_id),
        before={"state": before},
        after=after,
    )
