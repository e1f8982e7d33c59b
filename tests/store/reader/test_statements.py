"""The texts of the reader say what SQLAlchemy writes for the statements of the same duty."""

import re
from itertools import product
from typing import Any

import pytest
from sqlalchemy import Boolean, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Dialect

from tsuzuki.model.run_filter import RunFilter
from tsuzuki.model.states import LIVE_STATES, Reason, RunState
from tsuzuki.store import jobs
from tsuzuki.store.reader import reader, statements
from tsuzuki.store.rows import RUN_COLUMNS, SPEC_COLUMNS, TRANSITION_COLUMNS
from tsuzuki.store.runs import runs
from tsuzuki.store.schema.operation_tables import run_cancel_requests
from tsuzuki.store.schema.tables import job_definitions, job_run_transitions, job_runs
from tsuzuki.store.sql.types import JsonText, UtcTime

FILTERS = [
    RunFilter(job_name=job_name, states=states, worker_id=worker, reason=reason, before_id=before)
    for job_name, states, worker, reason, before in product(
        (None, "hello"),
        (
            frozenset[RunState](),
            frozenset({RunState.RUNNING}),
            frozenset({RunState.FAILED}),
            frozenset({RunState.ASSIGNED, RunState.RUNNING}),
            frozenset({RunState.SUCCEEDED, RunState.FAILED}),
            LIVE_STATES,
        ),
        (None, "host-1-aaaa"),
        (None, Reason.OPERATOR),
        (None, 7),
    )
]


_IS_ASKED = run_cancel_requests.c.run_id == 1


def written_by_sqlalchemy(statement: Any, dialect: Dialect) -> str:
    """On one line, and without its ways of writing: quotes around a word that SQLite takes as a name too, a
    constant or an offset of 0 sent as a value, casts of values."""
    text = " ".join(str(statement.compile(dialect=dialect)).split())
    text = re.sub(r"%\(\w+\)s(::\w+)?", "?", text)
    text = text.replace("tsuzuki_job_runs.id + ?", "tsuzuki_job_runs.id + 0").replace(
        '"trigger"', "trigger"
    )
    return text.removesuffix(" OFFSET ?")


@pytest.mark.parametrize(
    "dialect",
    [sqlite.dialect(), postgresql.dialect()],
    ids=["sqlite", "postgresql"],
)
def test_each_text_is_the_one_that_sqlalchemy_writes(dialect: Dialect) -> None:
    pairs = [
        (statements.ALL_JOBS, jobs._ALL),
        (statements.RUN_BY_ID, runs._BY_ID),
        (statements.RUN_BY_KEY, runs._BY_KEY),
        (statements.HISTORY, runs._MOVES),
        (statements.CANCEL_REQUEST, select(*run_cancel_requests.c).where(_IS_ASKED)),
        *((statements.find_runs(wanted)[0], runs.find_statement(wanted)) for wanted in FILTERS),
    ]
    for ours, theirs in pairs:
        assert ours == written_by_sqlalchemy(theirs, dialect)


def test_columns_are_those_of_the_tables() -> None:
    spec_columns = [column.name for column in job_definitions.c if column.name in SPEC_COLUMNS]
    assert list(SPEC_COLUMNS) == spec_columns
    assert list(statements.JOB_COLUMNS) == job_definitions.c.keys()
    assert [*TRANSITION_COLUMNS, "seq"] == select(job_run_transitions).exported_columns.keys()


def test_every_column_that_is_stored_in_another_form_is_read_back() -> None:
    read = [*job_definitions.c, *(job_runs.c[name] for name in RUN_COLUMNS), *job_run_transitions.c]
    read += run_cancel_requests.c
    for kind, names in (
        (UtcTime, reader.TIMES),
        (JsonText, reader.JSON),
        (Boolean, reader.FLAGS),
    ):
        assert {column.name for column in read if isinstance(column.type, kind)} == names


def test_a_condition_that_the_reader_does_not_know_is_no_condition_left_out() -> None:
    with pytest.raises(ValueError, match="does not know"):
        statements.find_runs(RunFilter(excluded_states=frozenset({RunState.FAILED})))
