"""Rows of jobs and runs, and the model objects that they stand for. No driver and no SQLAlchemy: the prepared
statements and the driver-only reader (`store.reader`) share it.

The names of the columns are those of `schema.tables`; a test compares them.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from tsuzuki.model.job import Job, JobSource, JobSpec
from tsuzuki.model.misfire import Misfire
from tsuzuki.model.overlap import ConcurrencyPolicy
from tsuzuki.model.retry import RetryPolicy
from tsuzuki.model.run import CancelRequest, Run, Transition
from tsuzuki.model.schedule import read_stored
from tsuzuki.model.states import Actor, ContinuationState, Reason, RunState, Trigger

SPEC_COLUMNS = (
    "name",
    "description",
    "handler",
    "options",
    "arguments",
    "enabled",
    "schedule",
    "spread_seconds",
    "on_event",
    "misfire",
    "catchup_window_seconds",
    "concurrency_policy",
    "max_concurrent",
    "concurrency_key",
    "max_concurrent_per_key",
    "priority",
    "timeout_seconds",
    "retry",
    "tags",
)
"""The columns of a job that are its definition, in the order in which people read them."""

RUN_COLUMNS = tuple(field.name for field in fields(Run) if field.name != "job_name")
"""The columns of `job_runs` that a `Run` has."""

TRANSITION_COLUMNS = tuple(field.name for field in fields(Transition))


def columns_of(spec: JobSpec) -> dict[str, Any]:
    """The values as they are stored, in the order of the columns."""
    return {
        **{name: getattr(spec, name) for name in SPEC_COLUMNS},
        "options": dict(spec.options),
        "arguments": dict(spec.arguments),
        "schedule": spec.schedule.as_mapping() if spec.schedule else None,
        "retry": dict(vars(spec.retry)),
        "tags": sorted(spec.tags),
    }


def job_from(row: Mapping[str, Any]) -> Job:
    values = {name: value for name, value in row.items() if name not in SPEC_COLUMNS}
    values["source"] = JobSource(row["source"])
    return Job(spec=spec_from(row), **values)


def spec_from(row: Mapping[str, Any]) -> JobSpec:
    """The inverse of `columns_of`; columns that are not of the definition are left out."""
    values = {name: row[name] for name in SPEC_COLUMNS}
    values["schedule"] = read_stored(row["schedule"]) if row["schedule"] else None
    values["misfire"] = Misfire(row["misfire"])
    values["concurrency_policy"] = ConcurrencyPolicy(row["concurrency_policy"])
    values["retry"] = RetryPolicy(**row["retry"])
    values["tags"] = frozenset(row["tags"])
    return JobSpec(**values)


def run_from(row: Mapping[str, Any]) -> Run:
    values = dict(row)
    values["state"] = RunState(row["state"])
    values["trigger"] = Trigger(row["trigger"])
    values["continuation_state"] = ContinuationState(row["continuation_state"])
    values["reason"] = None if row["reason"] is None else Reason(row["reason"])
    return Run(**values)


def cancel_request_from(row: Mapping[str, Any]) -> CancelRequest:
    return CancelRequest(**{**row, "reason": Reason(row["reason"])})


def transition_from(row: Mapping[str, Any]) -> Transition:
    values = dict(row)
    values["from_state"] = RunState(row["from_state"])
    values["to_state"] = RunState(row["to_state"])
    values["actor"] = Actor(row["actor"])
    values["reason"] = None if row["reason"] is None else Reason(row["reason"])
    return Transition(**values)
