"""The rules of a BuildJob, one by one, and its ids."""

import random
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, combinations
from typing import Any

import pytest

from tsuzuki.collectors.codeindex.builds.job import (
    JOB_ID,
    BuildJob,
    BuildProgress,
    BuildResult,
    BuildStatus,
    InvalidBuildJob,
    build_id,
)

MOMENT = "2025-10-29T10:05:00Z"
RESULT = BuildResult(
    updated_files=50, removed_files=0, total_indexed_symbols=15500, last_indexed_at=MOMENT
)
RUNNING = BuildJob(
    id="build-1730188800000-abc123",
    status=BuildStatus.RUNNING,
    progress=BuildProgress(processed=1200, total=1500, rate=12.5),
    started_at="2025-10-29T10:00:00Z",
)
COMPLETED = replace(RUNNING, status=BuildStatus.COMPLETED, result=RESULT, completed_at=MOMENT)
FAILED = replace(RUNNING, status=BuildStatus.FAILED, error="disk full", failed_at=MOMENT)


def powerset(names: Iterable[str]) -> Iterator[tuple[str, ...]]:
    """Every choice of them, from none to all."""
    known = [*names]
    return chain.from_iterable(combinations(known, count) for count in range(len(known) + 1))


@pytest.mark.parametrize(
    ("job", "change", "words"),
    [
        (RUNNING, {"status": "waiting"}, "invalid status"),
        (RUNNING, {"progress": BuildProgress(processed=2, total=1)}, "processed .2. > total .1."),
        (RUNNING, {"progress": BuildProgress(processed=-1, total=1)}, "negative"),
        (RUNNING, {"progress": BuildProgress(rate=-0.1)}, "rate"),
        (RUNNING, {"progress": BuildProgress(rate=float("nan"))}, "rate"),
        (COMPLETED, {"result": None}, "result is required for a completed"),
        (COMPLETED, {"completed_at": None}, "completed_at is required"),
        (COMPLETED, {"error": "x"}, "error must be null"),
        (COMPLETED, {"failed_at": MOMENT}, "failed_at must be null"),
        (FAILED, {"error": None}, "error is required for a failed"),
        (FAILED, {"error": ""}, "error is required for a failed"),
        (FAILED, {"failed_at": None}, "failed_at is required"),
        (FAILED, {"result": RESULT}, "result must be null"),
        (FAILED, {"completed_at": MOMENT}, "completed_at must be null"),
        (RUNNING, {"result": RESULT}, "result must be null for a running"),
        (RUNNING, {"error": "x"}, "error must be null for a running"),
        (RUNNING, {"completed_at": MOMENT}, "completed_at must be null for a running"),
        (RUNNING, {"failed_at": MOMENT}, "failed_at must be null for a running"),
        (RUNNING, {"id": "build-1730188800000"}, "the id"),
        (RUNNING, {"id": "build-1730188800000-ABC123"}, "the id"),
        (RUNNING, {"id": "build-1730188800000-abc1234"}, "the id"),
        (RUNNING, {"id": "watcher-1730188800000-abc123"}, "the id"),
        (RUNNING, {"id": "build-1730188800000-abc123\n"}, "the id"),
    ],
)
def test_a_job_cannot_break_a_rule(job: BuildJob, change: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidBuildJob, match=words):
        replace(job, **change)


SET_IN = {
    BuildStatus.RUNNING: frozenset[str](),
    BuildStatus.COMPLETED: frozenset({"result", "completed_at"}),
    BuildStatus.FAILED: frozenset({"error", "failed_at"}),
}
VALUES = {"result": RESULT, "error": "disk full", "completed_at": MOMENT, "failed_at": MOMENT}


@pytest.mark.parametrize("status", BuildStatus)
@pytest.mark.parametrize("fields", [*powerset(VALUES)], ids="+".join)
def test_each_status_has_its_fields_and_no_other(
    status: BuildStatus, fields: tuple[str, ...]
) -> None:
    """The whole table: every status with every choice of the four fields that may be null."""

    def make() -> BuildJob:
        return replace(RUNNING, status=status, **{name: VALUES[name] for name in fields})  # type: ignore[arg-type] -- by name

    if frozenset(fields) == SET_IN[status]:
        assert make().status is status
    else:
        with pytest.raises(InvalidBuildJob):
            make()


def test_an_empty_tree_has_a_total_of_zero() -> None:
    assert replace(COMPLETED, progress=BuildProgress()).progress.total == 0


def test_a_watcher_has_an_id_without_a_random_part() -> None:
    assert replace(RUNNING, id="watcher-1730188800000").id == "watcher-1730188800000"


def test_ids_that_are_made_are_ids() -> None:
    made = {build_id(1730188800000, random.Random(seed)) for seed in range(200)}
    assert all(JOB_ID.fullmatch(one) for one in made)
    assert len(made) == 200


def test_the_json_has_the_names_of_the_contract() -> None:
    assert COMPLETED.as_json() == {
        "id": "build-1730188800000-abc123",
        "status": "completed",
        "progress": {"processed": 1200, "total": 1500, "rate": 12.5},
        "result": {
            "updatedFiles": 50,
            "removedFiles": 0,
            "totalIndexedSymbols": 15500,
            "lastIndexedAt": MOMENT,
        },
        "error": None,
        "startedAt": "2025-10-29T10:00:00Z",
        "completedAt": MOMENT,
        "failedAt": None,
    }
    assert list(RUNNING.as_json()) == list(FAILED.as_json()) == list(COMPLETED.as_json())
    assert FAILED.as_json()["error"] == "disk full"
