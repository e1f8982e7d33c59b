"""The response that explains the state of a run or job."""

from datetime import datetime

from tsuzuki.model.states import Outcome, RunState
from tsuzuki.services.explain import Cause, Explanation, StatusReason
from tsuzuki.web.answers import Model, SentenceText
from tsuzuki.web.context import Context


class ReasonOut(Model):
    cause: Cause
    sentence: SentenceText
    hint: SentenceText | None


class RunExplanation(Model):
    """All reasons that hold now. The first one is the one to look at."""

    run_id: int
    job: str
    state: RunState
    outcome: Outcome | None
    reasons: list[ReasonOut]


class JobExplanation(Model):
    job: str
    why: SentenceText
    run: RunExplanation | None


class RunStackOut(Model):
    """`stack` is null if the run executes no Python function now, or if its worker did not answer in time."""

    run_id: int
    stack: str | None
    at: datetime | None


def stack_of_run(context: Context, run_id: int) -> RunStackOut:
    """Ask the worker of a run where its function is; takes some seconds at most."""
    found = context.application.runs.stack(run_id)
    if found is None:
        return RunStackOut(run_id=run_id, stack=None, at=None)
    return RunStackOut(run_id=run_id, stack=context.mask(found.stack), at=found.at)


def explanation_out(context: Context, found: Explanation) -> RunExplanation:
    return RunExplanation(
        run_id=found.run_id,
        job=found.job,
        state=found.state,
        outcome=found.outcome,
        reasons=[reason_out(context, reason) for reason in found.reasons],
    )


def reason_out(context: Context, reason: StatusReason) -> ReasonOut:
    return ReasonOut(cause=reason.cause, sentence=context.mask(reason.sentence), hint=reason.hint)
