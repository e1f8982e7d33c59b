"""Runs as tables and details: one line per run in a list, and the most important facts of a single run first."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tsuzuki.cli.run.states import ShownState, shown_state
from tsuzuki.cli.terminal.formatting import format_duration, short_time
from tsuzuki.cli.terminal.output import Column
from tsuzuki.cli.terminal.values import table_text
from tsuzuki.model.states import Reason

if TYPE_CHECKING:
    from tsuzuki.model.run import Run
    from tsuzuki.services.explain import StatusReason
    from tsuzuki.services.runs import RunView

STATE_STYLES = {
    ShownState.RUNNING: "cyan",
    ShownState.SUCCEEDED: "green",
    ShownState.FAILED: "red",
    ShownState.TIMED_OUT: "red",
    ShownState.ORPHANED: "yellow",
    ShownState.CANCELED: "dim",
    ShownState.SKIPPED: "dim",
}
COLUMNS = [
    Column("id", align="right"),
    Column("job_name", "JOB"),
    Column("state"),
    Column("reason"),
    Column("attempt", align="right"),
    Column("progress"),
    Column("scheduled_for", "DUE"),
    Column("started_at", "STARTED"),
    Column("finished_at", "FINISHED"),
]
HISTORY = [
    Column("at"),
    Column("from_state", "FROM"),
    Column("to_state", "TO"),
    Column("actor"),
    Column("actor_id", "WHO"),
    Column("epoch", align="right"),
    Column("reason"),
]


def state_style(state: ShownState) -> str:
    return STATE_STYLES.get(state, "")


def row(
    one: "Run", reason: "StatusReason | None" = None, *, is_json: bool = True
) -> dict[str, Any]:
    """A run for `COLUMNS`; JSON has every field of it, and the state as it is stored. `reason` is why it waits."""
    waits_for = reason and {"cause": reason.cause, "sentence": str(reason.sentence)}
    return {
        **asdict(one),
        "state": one.state if is_json else shown_state(one),
        "outcome": one.outcome,
        "progress": _progress(one),
        "waits_for": waits_for,
    }


def terminal_list(
    found: "Sequence[Run]", now: datetime, reasons: "Mapping[int, StatusReason] | None" = None
) -> tuple[list[Any], list[Column]]:
    """Each run on one line: a list is read, so times are short, and long names and errors are cut. A column that would
    be empty is left out."""
    rows = [
        {
            **row(one),
            "state": shown_state(one),
            "took": took_seconds(one, now),
            "why": _why(one, (reasons or {}).get(one.id)),
        }
        for one in found
    ]
    columns = [
        Column("id", align="right"),
        Column("job_name", "JOB", shrinks=True),
        Column("state", style=state_style),
        Column("attempt", "TRY", align="right"),
        Column("progress", align="right"),
        Column("started_at", "STARTED", format=short_time(now)),
        Column("took", format=format_duration, align="right"),
        Column("why", shrinks=True),
    ]
    return rows, [column for column in columns if any(one[column.key] is not None for one in rows)]


def _why(one: "Run", reason: "StatusReason | None") -> str | None:
    """Why it waits, or ended so, on one line."""
    if reason is not None:
        return str(reason.sentence)
    if one.blocked_by is not None:
        return f"run {one.blocked_by} was still in progress"
    if one.error is None:
        return one.reason
    error = " ".join(one.error.split())
    return error if one.reason in (None, Reason.HANDLER_FAILED) else f"{one.reason}: {error}"


def terminal_history(now: datetime) -> list[Column]:
    """`HISTORY` on lines of 80 characters."""
    short = {
        "at": Column("at", format=short_time(now)),
        "actor_id": Column("actor_id", "WHO", shrinks=True),
    }
    return [short.get(column.key, column) for column in HISTORY]


def took_seconds(one: "Run", now: datetime) -> float | None:
    """From start to end, or until now; None if it has not started."""
    if one.started_at is None:
        return None
    passed = ((one.finished_at or now) - one.started_at).total_seconds()
    return max(round(passed, 1) if passed < 60 else round(passed), 0)


def summary(view: "RunView", now: datetime) -> tuple[dict[str, Any], list[Column]]:
    """What a person wants to know first. What is not there is left out."""
    run = view.run
    shown: dict[str, Any] = {
        "run": run.id,
        "job": run.job_name,
        "state": shown_state(run),
        "why": run.reason,
        "blocked by": run.blocked_by,
        "error": run.error and " ".join(run.error.split()),
        "result": run.result,
        "progress": _progress(run),
        "attempt": run.attempt if run.attempt > 1 or run.retry_of or view.retried_as else None,
        "retry of": run.retry_of,
        "retried as": view.retried_as,
        "lost workers": run.orphan_count or None,
        "due": run.scheduled_for,
        "started": run.started_at,
        "finished": run.finished_at,
        "took": took_seconds(run, now),
        "worker": run.assigned_worker_id,
        "arguments": run.arguments or None,
        "event": run.event_id,
        "key": run.concurrency_key,
    }
    present = {name: value for name, value in shown.items() if value is not None}
    formats: dict[str, Callable[[Any], str]] = {"took": format_duration}
    columns = [
        Column(
            name,
            format=formats.get(name, table_text),
            style=state_style if name == "state" else None,
        )
        for name in present
    ]
    return present, columns


def _progress(one: "Run") -> str | None:
    if not one.progress_at:
        return None
    total = "?" if one.progress_total is None else one.progress_total
    return f"{one.progress_processed}/{total}"
