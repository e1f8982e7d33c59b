"""Answers that are lists: jobs, runs, and the lines of a run's log."""

import re
from datetime import UTC, datetime

from tsuzuki.mcp.answer import ToolAnswer
from tsuzuki.mcp.runs.masking import masked_line, masked_run
from tsuzuki.mcp.runs.next_calls import told_next
from tsuzuki.mcp.runs.rows import WalkRows, key_of, number_of, rows_answer
from tsuzuki.mcp.runs.run_arguments import job_of, run_id_of
from tsuzuki.mcp.runs.workspace import application_of
from tsuzuki.mcp.tool import ToolCall
from tsuzuki.model.run import Run
from tsuzuki.model.states import Outcome, RunState
from tsuzuki.services.jobs import JobView
from tsuzuki.services.logs import LogLine
from tsuzuki.services.runs import RunFilter

RUNS_DEFAULT = 20
LINES_MAX = 2000
LINE_LENGTH_SHORT = 300
ERROR_LENGTH_SHORT = 120
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def job_list(call: ToolCall) -> ToolAnswer:
    """Jobs by name, those of the file and those of the database."""
    wanted = str(call.get("query", "")).casefold()
    views = [one for one in application_of(call.state).jobs.find() if not one.is_built_in]
    found = sorted(
        (one for one in views if wanted in one.name.casefold()), key=lambda one: one.name
    )
    after = key_of(call)
    return rows_answer(
        call,
        WalkRows(
            noun="jobs",
            items=[one for one in found if after is None or one.name > after],
            key=lambda one: one.name,
            forms=(_job_line, lambda one: one.name),
            has_more=False,
            total=len(found),
            empty="No matching jobs." if wanted else "No jobs yet; add one with: tsuzuki job add",
        ),
    )


def run_list(call: ToolCall) -> ToolAnswer:
    """Runs, the newest first, as far as they are found in bounded time."""
    limit, before = int(call.get("limit", RUNS_DEFAULT)), number_of(call, digits_max=18)
    wanted = RunFilter(
        job_name=job_of(call),
        states=frozenset({RunState(call.get("state"))} if call.get("state") else ()),
        before_id=before,
        limit=limit + 1,
    )
    with told_next("job_list", {}):
        found, stopped_before = application_of(call.state).runs.search(wanted)
    is_stopped = stopped_before is not None and len(found) <= limit
    return rows_answer(
        call,
        WalkRows(
            noun="runs",
            items=[masked_run(one, call.state.mask) for one in found[:limit]],
            key=lambda one: str(one.id),
            forms=(_run_line, _short_run_line),
            has_more=len(found) > limit,
            continue_key=str(stopped_before) if is_stopped else None,
            empty="No matching runs.",
        ),
    )


def run_logs(call: ToolCall) -> ToolAnswer:
    """The end of a log, or its start; the cursor goes on from there."""
    run_id, limit = run_id_of(call), int(call.get("limit", min(call.budget, LINES_MAX)))
    from_end = call.get("from", "end") == "end"
    cursor = number_of(call, digits_max=9)
    with told_next("run_list", {}):
        lines = _lines(call, run_id, limit, cursor, from_end=from_end)
    return rows_answer(
        call,
        WalkRows(
            noun=f"lines of run {run_id}",
            items=[masked_line(one, call.state.mask) for one in lines[:limit]],
            key=lambda one: str(one.seq),
            forms=(_log_line, short_log_line),
            has_more=len(lines) > limit,
            is_shown_backwards=from_end,
            empty=f"Run {run_id} has no{' more' if cursor else ''} output{'' if cursor else ' yet'}.",
        ),
    )


def _lines(
    call: ToolCall, run_id: int, limit: int, cursor: int | None, *, from_end: bool
) -> list[LogLine]:
    """One more than `limit`, if there are so many, in the order of the walk."""
    logs = application_of(call.state).logs
    if not from_end:
        return logs.read(run_id, after_seq=cursor or 0, limit=limit + 1)
    if cursor is None:
        return logs.tail(run_id, limit + 1)[::-1]
    # Lines are numbered one by one.
    earlier = logs.read(run_id, after_seq=max(0, cursor - limit - 2), limit=limit + 1)
    return [line for line in earlier if line.seq < cursor][::-1]


def moment(at: datetime | None) -> str:
    return "-" if at is None else at.astimezone(UTC).isoformat(timespec="seconds")[:-6] + "Z"


def progress_of(run: Run) -> str | None:
    if run.progress_at is None:
        return None
    total = "?" if run.progress_total is None else run.progress_total
    return f"{run.progress_processed}/{total}"


def _shown(run: Run) -> str:
    """Its state; of a skipped run also that it was skipped."""
    return f"{run.state} (skipped)" if run.outcome is Outcome.SKIPPED else run.state


def _job_line(view: JobView) -> str:
    spec = view.spec
    words = [spec.handler, view.schedule_words]
    if view.next_at is not None:
        words.append(f"next {moment(view.next_at)}")
    if not spec.enabled:
        words.append("disabled")
    about = f" - {spec.description}" if spec.description else ""
    return f"{view.name}: {', '.join(words)}{about}"


def _run_line(run: Run) -> str:
    words = [f"{run.id} {run.job_name} {_shown(run)}"]
    if run.reason is not None:
        words.append(str(run.reason))
    if run.attempt > 1:
        words.append(f"attempt {run.attempt}")
    if progress := progress_of(run):
        words.append(progress)
    if run.finished_at is not None:
        words.append(f"finished {moment(run.finished_at)}")
    elif run.started_at is not None:
        words.append(f"started {moment(run.started_at)}")
    else:
        words.append(f"due {moment(run.scheduled_for)}")
    if run.error:
        words.append(run.error.splitlines()[0][:ERROR_LENGTH_SHORT])
    return ", ".join(words)


def _short_run_line(run: Run) -> str:
    return f"{run.id} {run.job_name} {_shown(run)}"


def _log_line(line: LogLine) -> str:
    mark = "" if line.stream == "stdout" else f" {line.stream}"
    return f"{line.seq}{mark}: {_COLOUR.sub('', line.body)}"


def short_log_line(line: LogLine) -> str:
    whole = _log_line(line)
    return whole if len(whole) <= LINE_LENGTH_SHORT else whole[:LINE_LENGTH_SHORT] + "..."
