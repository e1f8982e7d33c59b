"""Start a run, look at it or wait for it, and cancel it."""

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from tsuzuki.mcp.answer import ToolAnswer
from tsuzuki.mcp.arguments import call_words
from tsuzuki.mcp.runs.definitions import WAIT_SECONDS_MAX
from tsuzuki.mcp.runs.masking import masked_line, masked_run
from tsuzuki.mcp.runs.next_calls import told_next
from tsuzuki.mcp.runs.run_arguments import job_of, run_id_of
from tsuzuki.mcp.runs.run_lists import moment, progress_of, short_log_line
from tsuzuki.mcp.runs.workspace import application_of, workspace_of
from tsuzuki.mcp.tokens import QUARTERS, clipped, compact_json, printable
from tsuzuki.mcp.tool import ToolCall
from tsuzuki.model.errors import Unreachable, WaitTimedOut
from tsuzuki.model.run import Run
from tsuzuki.model.secrets import SecretMask
from tsuzuki.model.states import RunState
from tsuzuki.services.runs import Request, RunView, Submission
from tsuzuki.wiring.application import Application

LOG_LINES = 20
FAILURES = frozenset({RunState.FAILED, RunState.TIMED_OUT})


def run_start(call: ToolCall) -> ToolAnswer:
    """Stored when this returns: it survives any process."""
    application = application_of(call.state)
    request = Request(
        job=job_of(call) or "",
        arguments=call.get("arguments", {}),
        idempotency_key=call.get("key"),
    )
    with told_next("job_list", {}):
        workspace_of(call.state).apply_file()
        submission = application.runs.submit(request, audited=True)
    try:
        view = application.runs.get(submission.run_id)
        facts = _facts(application, view, call.state.mask)
    except Unreachable:
        return _only_stored(submission, request.job)
    said = [] if submission.is_new else ["The key was used before; this is the run it started."]
    return _answer(call.budget, view, [*said, *facts], is_new=submission.is_new)


def _only_stored(submission: Submission, job: str) -> ToolAnswer:
    """The database left after it had stored the run. An error would make the agent start another one."""
    about = {"run_id": submission.run_id, "job": job, "is_new": submission.is_new}
    text = f"Next: {call_words('run_get', {'run_id': submission.run_id})}"
    header = f"run {submission.run_id} of {job}: stored"
    return ToolAnswer(header=header, text=text, structured={**about, "text": text})


def run_get(call: ToolCall) -> ToolAnswer:
    return _looked_at(call, wait_seconds=call.get("wait_seconds", 0))


def run_wait(call: ToolCall) -> ToolAnswer:
    return _looked_at(call, wait_seconds=call.get("wait_seconds", WAIT_SECONDS_MAX))


def run_cancel(call: ToolCall) -> ToolAnswer:
    """Stop a run, or never let it start."""
    run_id = run_id_of(call)
    application = application_of(call.state)
    with told_next("run_list", {}):
        application.runs.get(run_id)
    with told_next("run_get", {"run_id": run_id}):
        application.runs.cancel(run_id)
    view = application.runs.get(run_id)
    return _answer(call.budget, view, _facts(application, view, call.state.mask))


def _looked_at(call: ToolCall, *, wait_seconds: int) -> ToolAnswer:
    run_id = run_id_of(call)
    application = application_of(call.state)
    with told_next("run_list", {}):
        application.runs.get(run_id)
    if wait_seconds:
        with suppress(WaitTimedOut):  # where it is then is the answer
            application.runs.wait(
                run_id,
                timeout_seconds=wait_seconds,
                on_change=lambda run: _report(call, run),
                stop=call.state.is_closing,
            )
    return run_answer(application, run_id, budget=call.budget, mask=call.state.mask)


def run_answer(
    application: Application, run_id: int, *, budget: int, mask: SecretMask | None
) -> ToolAnswer:
    """All there is to know about a run, with the end of its log if it failed."""
    view = application.runs.get(run_id)
    log: Iterable[str] = ()
    if view.run.state in FAILURES and view.run.log_ref is None:
        lines = application.logs.tail(run_id, LOG_LINES)
        log = [short_log_line(masked_line(line, mask)) for line in lines]
    return _answer(budget, view, _facts(application, view, mask), log)


def waiting_words(application: Application, run: Run) -> str | None:
    """Why it does not run yet; None if it does, or has ended."""
    if run.state is RunState.RUNNING or run.state.is_final:
        return None
    explanation = application.runs.explain(run.id)
    if explanation.state is not run.state:
        return None  # it has moved since
    reason = explanation.reasons[0]
    return f"{reason.sentence} {reason.hint or ''}".strip()


def _report(call: ToolCall, run: Run) -> None:
    call.progress.report(run.progress_processed, run.progress_total, f"run {run.id} {run.state}")


def _facts(application: Application, view: RunView, mask: SecretMask | None) -> list[str]:
    run = masked_run(view.run, mask)
    waits = waiting_words(application, run)
    facts = {  # the most wanted first: a small budget leaves out the last ones
        "waits": waits if mask is None or waits is None else mask.text(waits),
        "reason": run.reason,
        "error": run.error,
        "result": None if run.result is None else compact_json(run.result),
        "progress": progress_of(run),
        "retried as run": view.retried_as,
        "attempt": run.attempt if run.attempt > 1 else None,
        "finished": moment(run.finished_at),
        "started": moment(run.started_at),
        "due": moment(run.scheduled_for),
    }
    lines = [f"{name}: {value}" for name, value in facts.items() if value not in (None, "-")]
    return [*lines, *_next(view)]


def _next(view: RunView) -> list[str]:
    if view.run.state.is_final and view.retried_as is None:
        return []
    wanted = {"run_id": view.retried_as or view.run.id, "wait_seconds": WAIT_SECONDS_MAX}
    return [f"Next: {call_words('run_get', wanted)}"]


def _answer(
    budget: int, view: RunView, facts: list[str], log: Iterable[str] = (), **more: Any
) -> ToolAnswer:
    """The facts, long ones cut to a share of the budget, and as many of the last lines of the log as fit."""
    run = view.run
    about = {
        "run_id": run.id,
        "job": run.job_name,
        "state": run.state.value,
        "is_final": run.state.is_final,
        "retried_as": view.retried_as,
        **more,
    }

    def made(lines: Iterable[str]) -> ToolAnswer:
        text = "\n".join(lines)
        header = f"run {run.id} of {run.job_name}: {run.state}"
        return ToolAnswer(header=header, text=text, structured={**about, "text": text})

    room = QUARTERS * budget - made([]).quarters
    facts = [clipped(printable(line), room // 3) for line in facts]
    while len(facts) > 1 and not made(facts).fits(budget):
        del facts[-2 if facts[-1].startswith("Next: ") else -1]
    lines = [printable(line) for line in log]
    while lines and not made([*facts, "log, last lines:", *lines]).fits(budget):
        del lines[0]
    return made([*facts, *(["log, last lines:", *lines] if lines else [])])
