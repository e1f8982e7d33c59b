"""Every CHECK of the tables: a row that cannot be true is refused, even where no guard stands."""

from typing import Any

import pytest
from sqlalchemy import CheckConstraint, Table, delete, insert, text

from store.schema import access_rows, failure_rows
from support import raw_statements
from support.factories import add_job
from support.raw_statements import COLUMNS_OF_STATE, MOMENT, WORKER_ID
from tsuzuki.model.states import RunState
from tsuzuki.store.schema.access_tables import api_requests, saved_views
from tsuzuki.store.schema.history_tables import pruned_history, run_hours, run_hours_progress
from tsuzuki.store.schema.operation_tables import (
    bulk_action_runs,
    bulk_actions,
    run_cancel_requests,
    run_stacks,
)
from tsuzuki.store.schema.tables import job_definitions, job_runs, leadership, metadata, workers
from tsuzuki.store.sql.database import Database

CANCEL_REQUEST = {
    "run_id": 1,
    "reason": "operator",
    "requested_by": "ada",
    "requested_at": MOMENT,
}
STACK_REQUEST = {"run_id": 1, "requested_at": MOMENT}
JOB = {
    "name": "other",
    "source": "database",
    "handler": "command",
    "options": {},
    "arguments": {},
    "enabled": True,
    "misfire": "one",
    "catchup_window_seconds": 1.0,
    "concurrency_policy": "forbid",
    "priority": 0,
    "retry": {},
    "tags": [],
    "version": 1,
    "planned_until": MOMENT,
    "created_at": MOMENT,
    "updated_at": MOMENT,
}
RUN = {
    "job_definition_id": 1,
    "version": 1,
    "trigger": "manual",
    "scheduled_for": MOMENT,
    "priority": 0,
    "arguments": {},
    "attempt": 1,
    "retries_used": 0,
    "created_at": MOMENT,
}
WORKER = {
    "id": WORKER_ID,
    "host": "host",
    "pid": 1,
    "state": "ATTACHED",
    "capacity": 1,
    "tags": [],
    "software_version": "test",
    "started_at": MOMENT,
    "heartbeat_at": MOMENT,
}
BULK = {
    "id": 1,
    "verb": "cancel",
    "filter": {},
    "ceiling_id": 9,
    "matched": 1,
    "created_at": MOMENT,
    "created_by": "ada",
}
CONFIRMED = {**BULK, "confirmed_at": MOMENT, "confirmed_by": "ada"}
BULK_RUN = {"bulk_id": 1, "run_id": 1, "result": "retried", "new_run_id": 2}
SAVED_VIEW = {"owner": "user:a", "name": "mine", "address": "/runs", "created_at": MOMENT}
RUN_HOUR = {
    "hour": MOMENT,
    "job_definition_id": 1,
    "outcome": "FAILED",
    "bucket": 0,
    "runs": 1,
    "seconds": 0.0,
}
API_REQUEST = {
    "actor": "user:ada",
    "idempotency_key": "k",
    "request_id": "r",
    "fingerprint": "f",
    "claim": "c",
    "claimed_until": MOMENT,
    "expires_at": MOMENT,
}
LEADERSHIP = {"id": 1, "epoch": 0, "lease_expires_at": MOMENT}


def run_row(state: RunState, **changes: Any) -> dict[str, Any]:
    return {**RUN, "state": state, **COLUMNS_OF_STATE[state], **changes}


S = RunState
CONFIRMING = {"continuation_state": "CONFIRMING", "continuation_check_deadline_at": MOMENT}

IMPOSSIBLE: dict[str, list[tuple[Table, dict[str, Any]]]] = {
    "tsuzuki_ck_job_definitions_source": [(job_definitions, {**JOB, "source": "thin air"})],
    "tsuzuki_ck_job_definitions_misfire": [(job_definitions, {**JOB, "misfire": "perhaps"})],
    "tsuzuki_ck_job_definitions_concurrency_policy": [
        (job_definitions, {**JOB, "concurrency_policy": "perhaps"})
    ],
    "tsuzuki_ck_job_definitions_name": [
        (job_definitions, {**JOB, "name": ""}),
        (job_definitions, {**JOB, "name": "x" * 101}),
    ],
    "tsuzuki_ck_job_definitions_version": [(job_definitions, {**JOB, "version": 0})],
    "tsuzuki_ck_job_definitions_catchup_window_seconds": [
        (job_definitions, {**JOB, "catchup_window_seconds": -0.1})
    ],
    "tsuzuki_ck_job_definitions_spread_seconds": [
        (job_definitions, {**JOB, "spread_seconds": -0.1})
    ],
    "tsuzuki_ck_job_definitions_max_concurrent": [(job_definitions, {**JOB, "max_concurrent": 0})],
    "tsuzuki_ck_job_definitions_max_concurrent_per_key": [
        (job_definitions, {**JOB, "max_concurrent_per_key": 0})
    ],
    "tsuzuki_ck_job_definitions_timeout_seconds": [
        (job_definitions, {**JOB, "timeout_seconds": 0.0})
    ],
    "tsuzuki_ck_job_definitions_priority": [
        (job_definitions, {**JOB, "priority": -1001}),
        (job_definitions, {**JOB, "priority": 1001}),
    ],
    "tsuzuki_ck_job_runs_state": [(job_runs, {**RUN, "state": "LOST"})],
    "tsuzuki_ck_job_runs_trigger": [(job_runs, run_row(S.PENDING, trigger="magic"))],
    "tsuzuki_ck_job_runs_reason": [(job_runs, run_row(S.PENDING, reason="whim"))],
    "tsuzuki_ck_job_runs_moved_as": [(job_runs, run_row(S.PENDING, moved_as="unknown"))],
    "tsuzuki_ck_job_runs_continuation_state": [
        (job_runs, run_row(S.RUNNING, continuation_state="PERHAPS"))
    ],
    "tsuzuki_ck_job_runs_version": [(job_runs, run_row(S.PENDING, version=0))],
    "tsuzuki_ck_job_runs_attempt": [(job_runs, run_row(S.PENDING, attempt=0, retries_used=-1))],
    "tsuzuki_ck_job_runs_retries_used": [
        (job_runs, run_row(S.PENDING, retries_used=-1)),
        (job_runs, run_row(S.PENDING, attempt=2, retries_used=2)),
    ],
    "tsuzuki_ck_job_runs_orphan_count": [(job_runs, run_row(S.PENDING, orphan_count=-1))],
    "tsuzuki_ck_job_runs_orphans_free": [(job_runs, run_row(S.PENDING, orphans_free=-1))],
    "tsuzuki_ck_job_runs_losses": [(job_runs, run_row(S.PENDING, losses=-1))],
    "tsuzuki_ck_job_runs_losses_free": [(job_runs, run_row(S.PENDING, losses_free=-1))],
    "tsuzuki_ck_job_runs_covers_ticks": [(job_runs, run_row(S.PENDING, covers_ticks=0))],
    "tsuzuki_ck_job_runs_progress": [
        (job_runs, run_row(S.RUNNING, progress_processed=-1)),
        (job_runs, run_row(S.RUNNING, progress_total=-1)),
    ],
    "tsuzuki_ck_job_runs_pending": [
        (job_runs, run_row(S.PENDING, assigned_worker_id=WORKER_ID)),
        (job_runs, run_row(S.PENDING, started_at=MOMENT)),
        (job_runs, run_row(S.PENDING, finished_at=MOMENT)),
    ],
    "tsuzuki_ck_job_runs_assigned": [
        (job_runs, run_row(S.ASSIGNED, assigned_worker_id=None)),
        (job_runs, run_row(S.ASSIGNED, assigned_at=None)),
        (job_runs, run_row(S.ASSIGNED, started_at=MOMENT)),
        (job_runs, run_row(S.ASSIGNED, finished_at=MOMENT)),
    ],
    "tsuzuki_ck_job_runs_running": [
        (job_runs, run_row(S.RUNNING, assigned_worker_id=None)),
        (job_runs, run_row(S.RUNNING, started_at=None)),
        (job_runs, run_row(S.RUNNING, leader_epoch=None)),
        (job_runs, run_row(S.RUNNING, finished_at=MOMENT)),
    ],
    "tsuzuki_ck_job_runs_orphaned": [
        (job_runs, run_row(S.ORPHANED, orphan_count=0)),
        (job_runs, run_row(S.ORPHANED, started_at=MOMENT)),
        (job_runs, run_row(S.ORPHANED, finished_at=MOMENT)),
    ],
    "tsuzuki_ck_job_runs_executed": [
        (job_runs, run_row(S.SUCCEEDED, started_at=None)),
        (job_runs, run_row(S.SUCCEEDED, finished_at=None)),
        (job_runs, run_row(S.TIMED_OUT, started_at=None)),
    ],
    "tsuzuki_ck_job_runs_ended_for_a_reason": [
        (job_runs, run_row(state, **{missing: None}))
        for state in (S.FAILED, S.CANCELED)
        for missing in ("reason", "finished_at")
    ],
    "tsuzuki_ck_job_runs_continuation": [
        (job_runs, run_row(S.RUNNING, continuation_state="CONFIRMING")),
        (job_runs, run_row(S.RUNNING, continuation_check_deadline_at=MOMENT)),
        (job_runs, run_row(S.ASSIGNED, **CONFIRMING)),
        (job_runs, run_row(S.SUCCEEDED, **CONFIRMING)),
    ],
    "tsuzuki_ck_workers_state": [(workers, {**WORKER, "state": "ASLEEP"})],
    "tsuzuki_ck_workers_detach_reason": [
        (workers, {**WORKER, "state": "DETACHED", "detach_reason": "whim"})
    ],
    "tsuzuki_ck_workers_capacity": [(workers, {**WORKER, "capacity": -1})],
    "tsuzuki_ck_workers_detached": [
        (workers, {**WORKER, "state": "DETACHED"}),
        (workers, {**WORKER, "detach_reason": "silent"}),
    ],
    "tsuzuki_ck_bulk_actions_verb": [(bulk_actions, {**BULK, "verb": "delete"})],
    "tsuzuki_ck_bulk_actions_matched": [
        (bulk_actions, {**BULK, "matched": -1}),
        (bulk_actions, {**CONFIRMED, "done": -1}),
    ],
    "tsuzuki_ck_bulk_actions_position": [
        (bulk_actions, {**CONFIRMED, "position": 10}),
        (bulk_actions, {**CONFIRMED, "position": -1}),
    ],
    "tsuzuki_ck_bulk_actions_confirmed": [
        (bulk_actions, {**BULK, "confirmed_at": MOMENT}),
        (bulk_actions, {**BULK, "run_id": 1}),
        (bulk_actions, {**BULK, "finished_at": MOMENT}),
        (bulk_actions, {**BULK, "stopped_at": MOMENT}),
        (bulk_actions, {**BULK, "done": 1}),
    ],
    "tsuzuki_ck_bulk_action_runs_result": [
        (bulk_action_runs, {**BULK_RUN, "result": "lost", "new_run_id": None})
    ],
    "tsuzuki_ck_bulk_action_runs_new_run_id": [
        (bulk_action_runs, {**BULK_RUN, "new_run_id": None}),
        (bulk_action_runs, {**BULK_RUN, "result": "canceled"}),
    ],
    "tsuzuki_ck_run_hours_outcome": [(run_hours, {**RUN_HOUR, "outcome": "RUNNING"})],
    "tsuzuki_ck_run_hours_bucket": [(run_hours, {**RUN_HOUR, "bucket": -1})],
    "tsuzuki_ck_run_hours_runs": [(run_hours, {**RUN_HOUR, "runs": 0})],
    "tsuzuki_ck_pruned_history_single": [(pruned_history, {"id": 2, "until": MOMENT})],
    "tsuzuki_ck_run_hours_progress_single": [(run_hours_progress, {"id": 2, "until": MOMENT})],
    "tsuzuki_ck_leadership_single": [(leadership, {**LEADERSHIP, "id": 2})],
    "tsuzuki_ck_leadership_epoch": [(leadership, {**LEADERSHIP, "epoch": -1})],
    **access_rows.IMPOSSIBLE,
    "tsuzuki_ck_api_requests_answer": [
        (api_requests, {**API_REQUEST, "status": 200}),
        (api_requests, {**API_REQUEST, "status": 200, "headers": {}}),
        (api_requests, {**API_REQUEST, "body": ""}),
    ],
    "tsuzuki_ck_run_cancel_requests_reason": [
        (run_cancel_requests, {**CANCEL_REQUEST, "reason": "worker_lost"}),
    ],
    "tsuzuki_ck_run_stacks_dumped": [
        (run_stacks, {**STACK_REQUEST, "stack": "here"}),
        (run_stacks, {**STACK_REQUEST, "dumped_at": MOMENT}),
    ],
    "tsuzuki_ck_saved_views_address": [
        (saved_views, {**SAVED_VIEW, "address": "https://example.org/"})
    ],
    **failure_rows.IMPOSSIBLE,
}

POSSIBLE: list[tuple[Table, dict[str, Any]]] = [
    (job_definitions, JOB),
    *((job_runs, run_row(state)) for state in RunState),
    (job_runs, run_row(S.RUNNING, **CONFIRMING)),
    (job_runs, run_row(S.RUNNING, progress_processed=0, progress_total=0)),
    (workers, WORKER),
    (workers, {**WORKER, "id": "b", "state": "DETACHED", "detach_reason": "operator"}),
    (bulk_actions, BULK),
    (bulk_actions, {**CONFIRMED, "id": 2, "position": 9, "done": 1, "finished_at": MOMENT}),
    (bulk_action_runs, BULK_RUN),
    (bulk_action_runs, {"bulk_id": 1, "run_id": 3, "result": "canceled"}),
    (run_hours, RUN_HOUR),
    (run_hours_progress, {"id": 1, "until": MOMENT}),
    (pruned_history, {"id": 1, "until": MOMENT}),
    (leadership, LEADERSHIP),
    *access_rows.POSSIBLE,
    (api_requests, API_REQUEST),
    (api_requests, {**API_REQUEST, "actor": "b", "status": 200, "headers": {}, "body": ""}),
    (run_cancel_requests, CANCEL_REQUEST),
    (run_stacks, STACK_REQUEST),
    (run_stacks, {**STACK_REQUEST, "run_id": 2, "stack": "here", "dumped_at": MOMENT}),
    (saved_views, SAVED_VIEW),
    *failure_rows.POSSIBLE,
]


@pytest.fixture
def unguarded(database: Database) -> Database:
    """The tables alone, with one job and no trigger left."""
    add_job(database)
    with database.write() as connection:
        if database.is_sqlite:
            triggers = "SELECT name FROM sqlite_master WHERE type = 'trigger'"
            for name in connection.execute(text(triggers)).scalars().all():
                connection.execute(text(f"DROP TRIGGER {name}"))
        else:
            for table in metadata.tables:
                connection.execute(text(f"ALTER TABLE {table} DISABLE TRIGGER USER"))
        connection.execute(delete(leadership))
    return database


def test_every_check_of_every_table_has_its_impossible_row() -> None:
    checks = {
        str(constraint.name)
        for table in metadata.tables.values()
        for constraint in table.constraints
        if isinstance(constraint, CheckConstraint)
    }
    assert checks == set(IMPOSSIBLE)


def test_a_row_that_cannot_be_true_is_refused_by_its_check(unguarded: Database) -> None:
    for check, rows in IMPOSSIBLE.items():
        for table, row in rows:
            words = raw_statements.refusal(unguarded, insert(table).values(row))
            assert check in words, (check, row, words)


def test_the_rows_beside_them_are_accepted(unguarded: Database) -> None:
    for table, row in POSSIBLE:
        raw_statements.send(unguarded, insert(table).values(row))
