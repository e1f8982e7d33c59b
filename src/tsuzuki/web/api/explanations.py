"""The response that explains the state of a run or job."""

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
