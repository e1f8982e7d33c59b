"""A batch of rows in one statement stores each row's own values."""

from typing import Any

from sqlalchemy import text

from support.factories import WORKER, add_job, add_worker, new_run, take_lead
from tsuzuki.model.run import RunRef
from tsuzuki.model.states import RunState
from tsuzuki.store.runs import moves, runs
from tsuzuki.store.runs.moves import RunEnd
from tsuzuki.store.sql.database import Database

EQUAL: list[tuple[Any, str]] = [
    ({"n": 1}, '{"n":1}'),
    ({"n": True}, '{"n":true}'),
    ({"n": 1.0}, '{"n":1.0}'),
]
"""Equal in Python, with the texts that are stored."""


def create(database: Database, arguments: list[Any]) -> list[int]:
    job_id = add_job(database)
    created = [new_run(database, job_id, arguments=one) for one in arguments]
    with database.write() as connection:
        return [run_id for run_id in runs.create(connection, created) if run_id is not None]


def stored(database: Database, column: str) -> list[str]:
    with database.read() as connection:
        return [
            *connection.execute(
                text(f"SELECT {column} FROM tsuzuki_job_runs ORDER BY id")
            ).scalars()
        ]


def test_arguments_that_are_equal_in_python_are_stored_as_they_were_given(
    database: Database,
) -> None:
    create(database, [value for value, _ in EQUAL])
    assert stored(database, "arguments") == [written for _, written in EQUAL]


def test_results_that_are_equal_in_python_are_stored_as_they_were_given(database: Database) -> None:
    term = take_lead(database)
    add_worker(database)
    refs = [RunRef(id=run_id, version=1) for run_id in create(database, [{}, {}, {}])]
    with database.write() as connection:
        started = moves.assign_and_start(connection, term=term, worker_id=WORKER, runs=refs)
        ends = [
            RunEnd(run=started[run.id].started, state=RunState.SUCCEEDED, result=value)
            for run, (value, _) in zip(refs, EQUAL, strict=True)
        ]
        assert len(moves.finish(connection, worker_id=WORKER, ends=ends)) == len(EQUAL)
    assert stored(database, "result") == [written for _, written in EQUAL]
