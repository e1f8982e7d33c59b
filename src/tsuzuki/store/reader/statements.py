"""The SQL texts of the reader. A test compares each with what SQLAlchemy writes for the statement of the same duty.

`?` stands for a value; `connection` writes it in the way of its driver.
"""

from typing import Any

from tsuzuki.model.run_filter import RunFilter
from tsuzuki.model.states import RunState
from tsuzuki.store.rows import RUN_COLUMNS, SPEC_COLUMNS, TRANSITION_COLUMNS
from tsuzuki.store.runs.indexed_states import sorted_by_index, state_lists

_NAME, *_REST_OF_SPEC = SPEC_COLUMNS
JOB_COLUMNS = (
    "id",
    _NAME,
    "source",
    *_REST_OF_SPEC,
    "version",
    "planned_until",
    "created_at",
    "updated_at",
    "deleted_at",
)
RUN_NAMES = (*RUN_COLUMNS, "job_name")


def _of(table: str, columns: tuple[str, ...]) -> str:
    return ", ".join(f"{table}.{name}" for name in columns)


ALL_JOBS = (
    f"SELECT {_of('tsuzuki_job_definitions', JOB_COLUMNS)} FROM tsuzuki_job_definitions "
    "WHERE tsuzuki_job_definitions.deleted_at IS NULL ORDER BY tsuzuki_job_definitions.name"
)
_RUNS = (
    f"SELECT {_of('tsuzuki_job_runs', RUN_COLUMNS)}, tsuzuki_job_definitions.name AS job_name FROM tsuzuki_job_runs "
    "JOIN tsuzuki_job_definitions ON tsuzuki_job_definitions.id = tsuzuki_job_runs.job_definition_id"
)
RUN_BY_ID = f"{_RUNS} WHERE tsuzuki_job_runs.id = ?"
CANCEL_REQUEST_COLUMNS = ("run_id", "reason", "requested_by", "requested_at")
CANCEL_REQUEST = (
    f"SELECT {_of('tsuzuki_run_cancel_requests', CANCEL_REQUEST_COLUMNS)} FROM tsuzuki_run_cancel_requests "
    "WHERE tsuzuki_run_cancel_requests.run_id = ?"
)
LAST_ENDED = (
    f"{_RUNS} WHERE tsuzuki_job_runs.id IN (SELECT (SELECT newest.id FROM tsuzuki_job_runs AS newest "
    "WHERE newest.job_definition_id = job.id AND newest.finished_at IS NOT NULL "
    "ORDER BY newest.id DESC LIMIT 1) FROM tsuzuki_job_definitions AS job WHERE job.deleted_at IS NULL)"
)
RUN_BY_KEY = f"{_RUNS} WHERE tsuzuki_job_runs.idempotency_key = ?"
HISTORY = (
    f"SELECT {_of('tsuzuki_job_run_transitions', TRANSITION_COLUMNS)} FROM tsuzuki_job_run_transitions "
    "WHERE tsuzuki_job_run_transitions.run_id = ? ORDER BY tsuzuki_job_run_transitions.version"
)


def find_runs(wanted: RunFilter) -> tuple[str, list[Any]]:
    """The statement and its values. Raises `ValueError` for a filter with conditions that only SQLAlchemy's has."""
    if wanted != _plain(wanted):
        raise ValueError("the reader does not know all conditions of this filter")
    conditions: list[str] = []
    values: list[Any] = []
    if wanted.job_name is not None:
        conditions.append("tsuzuki_job_definitions.name = ?")
        values.append(wanted.job_name)
    if wanted.states:
        conditions += [_in_states(states) for states in state_lists(*sorted(wanted.states))]
    for column, value, operator in (
        ("tsuzuki_job_runs.assigned_worker_id", wanted.worker_id, "="),
        ("tsuzuki_job_runs.reason", wanted.reason, "="),
        ("tsuzuki_job_runs.id", wanted.before_id, "<"),
    ):
        if value is not None:
            conditions.append(f"{column} {operator} ?")
            values.append(value)
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    order = "tsuzuki_job_runs.id + 0" if sorted_by_index(wanted.states) else "tsuzuki_job_runs.id"
    return f"{_RUNS}{where} ORDER BY {order} DESC LIMIT ?", [*values, wanted.limit]


def _plain(wanted: RunFilter) -> RunFilter:
    """The filter with the conditions that the reader knows."""
    return RunFilter(
        job_name=wanted.job_name,
        states=wanted.states,
        worker_id=wanted.worker_id,
        reason=wanted.reason,
        before_id=wanted.before_id,
        limit=wanted.limit,
    )


def _in_states(states: tuple[RunState, ...]) -> str:
    names = [f"'{state.value}'" for state in states]
    return (
        f"tsuzuki_job_runs.state IN ({', '.join(names)})"
        if len(names) > 1
        else f"tsuzuki_job_runs.state = {names[0]}"
    )
