"""The tables are those that were specified, and refuse what cannot be."""

import uuid
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from support.commit_collection import Collecting
from tsuzuki.collectors.commits.queries import ledger, reports
from tsuzuki.collectors.commits.queries.targets import Target
from tsuzuki.collectors.commits.tables import COMPONENT
from tsuzuki.store.schema.migration_steps import drift

RUN = {
    "run_id": "550e8400-e29b-41d4-a716-446655440000",
    "started_at_utc": "2026-01-01T00:00:00Z",
    "completed_at_utc": None,
    "status": "running",
    "total_targets": 3,
    "completed_count": 0,
    "failed_count": 0,
    "success_count": 0,
}
ENDED = {"completed_at_utc": "2026-01-01T01:00:00Z", "status": "cancelled"}
RESULT = {
    "run_id": RUN["run_id"],
    "project_id": 1,
    "branch_name": "main",
    "status": "pending",
    "new_commits_count": None,
    "error_message": None,
    "processed_at_utc": None,
}
DONE = "2026-01-01T00:30:00Z"


def insert(collecting: Collecting, table: str, row: dict[str, Any]) -> None:
    columns = ", ".join(row)
    values = ", ".join(f":{name}" for name in row)
    with collecting.database.write() as connection:
        connection.execute(text(f"INSERT INTO {table} ({columns}) VALUES ({values})"), row)


def test_the_migrations_make_the_tables_that_are_defined(collecting: Collecting) -> None:
    with collecting.database.read() as connection:
        assert drift(connection, COMPONENT) == []


@pytest.mark.parametrize(
    "change",
    [
        {"status": "done"},
        {"run_id": "short"},
        {"completed_count": 1},
        {"success_count": 1},
        {"completed_count": 2, "success_count": 2, "failed_count": 2},
        {"failed_count": -1},
        {"completed_at_utc": DONE},
        {"status": "completed"},
        {"status": "completed", "completed_at_utc": DONE},
        {"status": "cancelled"},
        {"started_at_utc": None},
    ],
    ids=str,
)
def test_an_impossible_collection_is_refused(collecting: Collecting, change: Any) -> None:
    with pytest.raises(IntegrityError):
        insert(collecting, "bulk_collection_runs", {**RUN, **change})
    insert(collecting, "bulk_collection_runs", RUN)


@pytest.mark.parametrize(
    "change",
    [
        {"status": "skipped"},
        {"status": "success", "processed_at_utc": DONE},
        {"status": "failed", "processed_at_utc": DONE},
        {"status": "success", "new_commits_count": 1},
        {"status": "pending", "error_message": "no"},
        {"run_id": "550e8400-e29b-41d4-a716-446655440001"},
    ],
    ids=str,
)
def test_an_impossible_result_is_refused(collecting: Collecting, change: Any) -> None:
    insert(collecting, "bulk_collection_runs", RUN)
    with pytest.raises(IntegrityError):
        insert(collecting, "bulk_collection_results", {**RESULT, **change})
    insert(collecting, "bulk_collection_results", RESULT)


def test_at_most_one_collection_runs(collecting: Collecting) -> None:
    insert(collecting, "bulk_collection_runs", RUN)
    for _ in range(2):
        insert(collecting, "bulk_collection_runs", {**RUN, **ENDED, "run_id": str(uuid.uuid4())})
    with pytest.raises(IntegrityError):
        insert(collecting, "bulk_collection_runs", {**RUN, "run_id": str(uuid.uuid4())})
    with collecting.database.write() as connection:
        now = collecting.database.clock.now()
        assert (
            ledger.open_collection(connection, ledger.new_id(), [], job_run_id=1, now=now) is None
        )


def test_results_go_with_their_collection(collecting: Collecting) -> None:
    insert(collecting, "bulk_collection_runs", RUN)
    insert(collecting, "bulk_collection_results", RESULT)
    with collecting.database.write() as connection:
        connection.execute(text("DELETE FROM bulk_collection_runs"))
    assert collecting.ask("SELECT count(*) FROM bulk_collection_results") == [(0,)]


def test_a_new_id_is_a_random_uuid() -> None:
    assert uuid.UUID(ledger.new_id()).version == 4


def test_the_summary_is_the_specified_query(collecting: Collecting) -> None:
    insert(collecting, "bulk_collection_runs", {**RUN, "failed_count": 1})
    for branch, change in {
        "main": {},
        "side": {"status": "failed", "error_message": "no", "processed_at_utc": DONE},
        "third": {},
    }.items():
        insert(collecting, "bulk_collection_results", {**RESULT, "branch_name": branch, **change})
    specified = collecting.ask(
        "SELECT r.run_id, r.started_at_utc, r.completed_at_utc, r.status AS run_status,"
        " r.total_targets, r.success_count, r.failed_count,"
        " COUNT(CASE WHEN br.status = 'pending' THEN 1 END) AS pending_count"
        " FROM bulk_collection_runs r"
        " LEFT JOIN bulk_collection_results br ON r.run_id = br.run_id"
        " WHERE r.run_id = :run_id GROUP BY r.run_id",
        run_id=RUN["run_id"],
    )
    with collecting.database.read() as connection:
        (summary,) = reports.summaries(connection, collection_id=str(RUN["run_id"]))
    assert [tuple(specified[0])] == [tuple(vars(summary).values())]
    assert summary.pending_count == 2


def test_a_target_is_settled_once(collecting: Collecting) -> None:
    insert(collecting, "bulk_collection_runs", RUN)
    insert(collecting, "bulk_collection_results", RESULT)
    target, now = Target(1, "main"), collecting.database.clock.now()
    with collecting.database.write() as connection:
        run_id = str(RUN["run_id"])
        settled = ledger.SettledTarget(new_commits=1)
        assert ledger.settle(connection, run_id, target, settled, now=now)
        assert not ledger.settle(
            connection, run_id, target, ledger.SettledTarget(error="no"), now=now
        )
    assert collecting.ask("SELECT success_count, failed_count FROM bulk_collection_runs") == [
        (1, 0)
    ]


@pytest.mark.parametrize(
    "run_id",
    [
        "550e8400-e29b-11d4-a716-446655440000",  # version 1
        "550e8400-e29b-41d4-c716-446655440000",  # another variant
        "550e8400-e29b-41d4-a716-44665544000g",
        "550e8400-e29b-41d4-a716-4466554400-0",
        "550E8400-E29B-41D4-A716-446655440000",
    ],
)
def test_the_id_of_a_collection_is_a_uuid_of_version_4(collecting: Collecting, run_id: str) -> None:
    insert(collecting, "bulk_collection_runs", {**RUN, **ENDED, "run_id": str(uuid.uuid4())})
    with pytest.raises(IntegrityError):
        insert(collecting, "bulk_collection_runs", {**RUN, **ENDED, "run_id": run_id})
