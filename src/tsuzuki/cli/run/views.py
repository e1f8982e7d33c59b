"""How runs look to a person: a line each in a list, and first what matters of one run."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tsuzuki.cli.terminal.formatting import format_duration, short_time
from tsuzuki.cli.terminal.output import Column
from tsuzuki.cli.terminal.values import table_text
from tsuzuki.model.states import RunState

if TYPE_CHECKING:
    from tsuzuki.model.run import Run
    from tsuzuki.services.runs import RunView

STATE_STYLES = {
    RunState.RUNNING: "cyan",
    RunState.SUCCEEDED: "green",
    RunState.FAILED: "red",
    RunState.ORPHANED: "yellow",
    RunState.CANCELED: "dim",
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


def state_style(state: RunState) -> str:
    return STATE_STYLES.get(state, "")


def row(one: "Run") -> dict[str, Any]:
    """A run for `COLUMNS`; JSON has every field of it."""
    return {**asdict(one), "progress": _progress(one)}


def terminal_list(found: "Sequence[Run]", now: datetime) -> tuple[list[Any], list[Column]]:
    """Each run on one line of 80 characters: a list is read, so times are short and long names are cut. A
    column that would be empty is left out."""
    rows = [{**row(one), "took": took_seconds(one, now)} for one in found]
    columns = [
        Column("id", align="right"),
        Column("job_name", "JOB", shrinks=True),
        Column("state", style=state_style),
        Column("reason", shrinks=True),
        Column("attempt", "TRY", align="right"),
        Column("progress", align="right"),
        Column("started_at", "STARTED", format=short_time(now)),
        Column("took", format=format_duration, align="right"),
    ]
    return rows, [column for column in columns if any(one[column.key] is not None for one in rows)]


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
        "state": run.state,
        "why": run.reason,
        "error": run.error,
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
