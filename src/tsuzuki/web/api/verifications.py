"""`/verifications`: start a comparison of stored data with its source, and read the results."""

from typing import Annotated, Any

from fastapi import Response
from pydantic import Field, ValidationError

from tsuzuki.model.access import Right
from tsuzuki.model.run import Run
from tsuzuki.model.states import RunState
from tsuzuki.model.verification import FaultKind
from tsuzuki.services.verification import CALLS, DAYS
from tsuzuki.web.answers import Model, Moment
from tsuzuki.web.context import Context
from tsuzuki.web.paging import Page, PageQuery
from tsuzuki.web.route import ApiRouter

router = ApiRouter("verifications")

PARTS_MAX = 100
Part = Annotated[str, Field(min_length=1, max_length=100, examples=["ticks"])]


class FaultOut(Model):
    kind: FaultKind
    name: str


class VerifiedOut(Model):
    """A subject with a fault, such as a branch, an account or a job. `named` has its first faults, `problem` why it
    could not be compared to the end."""

    subject: str
    ok: bool
    compared: int
    faults: int
    counts: dict[FaultKind, int]
    named: list[FaultOut]
    problem: str | None
    note: str | None


class PartOut(Model):
    """What the verification of one part found. `shown` has the first faulty subjects of `faulty`."""

    part: str
    ok: bool
    subjects: int
    compared: int
    faults: int
    counts: dict[FaultKind, int]
    faulty: int
    shown: list[VerifiedOut]
    notes: list[str]
    problem: str | None


class VerificationOut(Model):
    """A run that verifies. `parts` is empty until it has ended."""

    run_id: int
    job_name: str
    state: RunState
    ok: bool | None = Field(description="True if nothing is missing. Null without a result.")
    created_at: Moment
    started_at: Moment | None
    finished_at: Moment | None
    compared: int
    error: str | None
    parts: list[PartOut]


class NewVerification(Model):
    parts: list[Part] = Field(
        [], max_length=PARTS_MAX, description="Parts to verify (default: all)."
    )
    days: int = Field(
        DAYS, ge=1, le=3660, description="Number of days whose ticks and posts are verified."
    )
    calls: int = Field(
        CALLS, ge=0, le=10_000, description="Maximum number of calls to a source with a quota."
    )


class VerificationStarted(Model):
    run_id: int


def verification_out(context: Context, run: Run) -> VerificationOut:
    result = context.mask(run.result)
    found = result if isinstance(result, dict) else {}
    return VerificationOut(
        run_id=run.id,
        job_name=run.job_name,
        state=run.state,
        ok=found.get("ok") if isinstance(found.get("ok"), bool) else None,
        created_at=run.created_at,
        started_at=run.started_at,
        finished_at=run.finished_at,
        compared=run.progress_processed,
        error=context.mask(run.error),
        parts=_parts(found.get("parts")),
    )


def _parts(stored: Any) -> list[PartOut]:
    """None of a result that another version has stored in another form."""
    try:
        return [PartOut.model_validate(one) for one in stored or ()]
    except (TypeError, ValidationError):
        return []


@router.get("/verifications", right=Right.RUNS_READ)
def list_verifications(context: Context, query: PageQuery) -> Page[VerificationOut]:
    """List runs that verify, newest first, with their results."""
    runs = context.application.verification_runs
    return context.page(
        query,
        find=lambda after, limit: runs.find(before_id=after, limit=limit),
        position=lambda run: run.id,
        item=lambda run: verification_out(context, run),
    )


@router.post("/verifications", right=Right.JOBS_OPERATE, refuses=[422], status_code=202)
def start_verification(
    context: Context, body: NewVerification, response: Response
) -> VerificationStarted:
    """Start a run that compares stored data with its source. Location names the run. It fails if anything is
    missing."""
    run_id = context.application.verification_runs.start(
        body.parts, days=body.days, calls=body.calls
    ).run_id
    response.headers["Location"] = f"/api/v1/runs/{run_id}"
    return VerificationStarted(run_id=run_id)
