"""Execute a confirmed bulk retry as a run of the engine: page by page, oldest run first.

Each page is one transaction behind the fence of that run: the moves, the result for each run, the position and the
audit entries. A lost run is retried and continues at the position.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tsuzuki.engine.run_context import RunContext
from tsuzuki.model.bulk import BulkResult
from tsuzuki.model.run import Run, new_retry
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.model.states import RunState
from tsuzuki.store import audit, bulk
from tsuzuki.store.audit import Recorded
from tsuzuki.store.bulk import BulkAction, ResultOfRun
from tsuzuki.store.runs import cancel_requests, runs
from tsuzuki.store.sql.database import Connection, Database

PAGE = 200


def bulk_handler(database: Database) -> Callable[[RunContext], Any]:
    def carry_out(run: RunContext) -> dict[str, Any]:
        bulk_id = int(run.arguments["bulk"])
        while True:
            run.raise_if_cancelled()
            with run.transaction() as connection:
                taken = bulk.take(connection, bulk_id, run_id=run.id)
                if taken is not None:
                    _carry_out_page(connection, database, taken)
                action = bulk.get(connection, bulk_id)
            if action is None:
                return {"bulk": bulk_id, "done": 0}
            run.progress(action.done, action.matched)
            if taken is None or action.finished_at is not None:
                return {"bulk": bulk_id, "done": action.done}

    return carry_out


def _carry_out_page(connection: Connection, database: Database, action: BulkAction) -> None:
    wanted = replace(RunFilter.from_dict(action.filter), limit=PAGE)
    page = runs.page_of(connection, wanted, after_id=action.position, up_to_id=action.ceiling_id)
    if not page:
        bulk.finish(connection, action.id)
        return
    actor = action.confirmed_by or action.created_by
    results = _retry(connection, database, page)
    before = {run.id: run.state for run in page}
    changes = [_change(action, one, before[one.run_id]) for one in results if one.new_run_id]
    audit.record_many(connection, changes, actor=actor, object_type="run")
    bulk.advance(connection, action.id, position=page[-1].id, results=results)


def _retry(connection: Connection, database: Database, page: list[Run]) -> list[ResultOfRun]:
    now = database.now(connection)
    cancel_requests.remove(connection, [run.id for run in page])
    new_ids = runs.create(connection, [new_retry(run, scheduled_for=now) for run in page])
    return [
        ResultOfRun(run.id, BulkResult.RETRIED_BEFORE)
        if new_id is None
        else ResultOfRun(run.id, BulkResult.RETRIED, new_id)
        for run, new_id in zip(page, new_ids, strict=True)
    ]


def _change(action: BulkAction, retried: ResultOfRun, before: RunState) -> Recorded:
    """The line that retrying the run alone would leave, with the bulk action beside it."""
    after = {"state": before, "retried_as": retried.new_run_id, "bulk": action.id}
    return Recorded(str(retried.run_id), "run.retry", {"state": before}, after)
