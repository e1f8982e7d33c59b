"""The response model of a run."""

from dataclasses import asdict
from typing import Any

from pydantic import Field

from tsuzuki.model.run import Run
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.model.states import Actor, ContinuationState, Outcome, Reason, RunState, Trigger
from tsuzuki.services.explain import StatusReason
from tsuzuki.services.runs import RunView
from tsuzuki.web.answers import Model, Moment
from tsuzuki.web.api.explanations import ReasonOut, reason_out
from tsuzuki.web.context import Context

MASKED = ("arguments", "result", "error")


class RunOut(Model):
    """A run. Secrets in arguments, result and error are masked."""

    id: int
    job_definition_id: int
    job_name: str
    state: RunState
    outcome: Outcome | None = Field(
        description="Outcome for people: unlike `state`, it distinguishes SKIPPED from CANCELED. Null "
        "until the run ends."
    )
    version: int
    trigger: Trigger
    scheduled_for: Moment
    created_at: Moment
    priority: int
    arguments: dict[str, Any]
    attempt: int
    retries_used: int
    orphan_count: int
    orphans_free: int
    losses: int
    losses_free: int
    retry_of: int | None
    origin_id: int | None
    idempotency_key: str | None
    work_key: str | None = Field(
        description="Idempotency key for calls to outside services; retries share it."
    )
    concurrency_key: str | None
    event_id: int | None
    covers_ticks: int
    covers_until: Moment | None
    assigned_worker_id: str | None
    assigned_at: Moment | None
    leader_epoch: int | None
    started_at: Moment | None
    finished_at: Moment | None
    continuation_state: ContinuationState
    continuation_check_deadline_at: Moment | None
    reason: Reason | None
    error: str | None
    result: Any
    progress_processed: int
    progress_total: int | None
    progress_at: Moment | None
    blocked_by: int | None = Field(
        description="The run in progress that caused this one to be skipped (reason `overlap`)."
    )


class ListedRun(RunOut):
    """A run of a list: one that waits has the reason for it."""

    waits_for: ReasonOut | None = Field(
        description="Main reason why the run is waiting. Null if it is not waiting."
    )


class TransitionOut(Model):
    """One move of a run."""

    run_id: int
    version: int
    from_state: RunState
    to_state: RunState
    at: Moment
    actor: Actor
    actor_id: str
    epoch: int | None
    reason: Reason | None
    worker_id: str | None


class RunDetail(RunOut):
    """A run with its history."""

    retried_as: int | None = Field(description="ID of the run that retries this one.")
    cancel_requested_by: str | None = Field(
        description="Who requested the cancellation while the handler's transaction was open; the run "
        "ends with that transaction."
    )
    cancel_requested_at: Moment | None
    history: list[TransitionOut]


def run_out(context: Context, run: Run) -> RunOut:
    return RunOut(**_values(context, run))


def listed_out(context: Context, run: Run, reason: StatusReason | None) -> ListedRun:
    waits_for = None if reason is None else reason_out(context, reason)
    return ListedRun(**_values(context, run), waits_for=waits_for)


def listed_runs(context: Context, wanted: RunFilter) -> list[ListedRun]:
    """Runs as far as they are found in bounded time, newest first; why they wait, too."""
    runs = context.application.runs
    found = runs.search(wanted).runs
    reasons = runs.waiting_reasons(found)
    return [listed_out(context, run, reasons.get(run.id)) for run in found]


def detail_out(context: Context, view: RunView) -> RunDetail:
    requested = view.cancel_requested
    return RunDetail(
        **_values(context, view.run),
        retried_as=view.retried_as,
        cancel_requested_by=requested and requested.requested_by,
        cancel_requested_at=requested and requested.requested_at,
        history=[TransitionOut(**asdict(transition)) for transition in view.history],
    )


def _values(context: Context, run: Run) -> dict[str, Any]:
    values = {**vars(run), "outcome": run.outcome}
    del values["log_ref"]  # where the archive keeps it is of no use to a caller
    values.update({key: context.mask(values[key]) for key in MASKED})
    return values
