"""Jobs as tables and details: the columns, and phrases for what a job executes and its rules."""

import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tsuzuki.cli.invocation import Invocation, OutputFormat
from tsuzuki.cli.terminal.formatting import (
    ago,
    format_duration,
    format_list,
    format_size,
    short_time,
)
from tsuzuki.cli.terminal.output import Column, emit, is_terminal
from tsuzuki.cli.terminal.values import plain_text, table_text
from tsuzuki.model.clock import SystemClock
from tsuzuki.model.states import Outcome

if TYPE_CHECKING:
    from tsuzuki.services.job_views import JobView, LastEnd


def on_or_off(enabled: bool) -> str:
    return "on" if enabled else "off"


def what_it_runs(options: Mapping[str, Any]) -> str:
    """A command as it would be typed, a function by its name, any other kind by its options."""
    if "function" in options:
        limit = f", at most {format_size(options['memory'])}" if options.get("memory") else ""
        where = f", in a {options['isolation']}{limit}" if options.get("isolation") else ""
        return f"{options['function']}{where}"
    if "argv" not in options:
        return plain_text(options)
    words = shlex.join(options["argv"])
    if options.get("cwd"):
        words += f", in {options['cwd']}"
    if options.get("environment"):
        pairs = (f"{name}={value}" for name, value in options["environment"].items())
        words += f", with {' '.join(pairs)}"
    return words


def retries(retry: Mapping[str, Any]) -> str:
    if not retry["max_retries"]:
        return "none"
    first, cap = format_duration(retry["initial_seconds"]), format_duration(retry["cap_seconds"])
    return (
        f"{retry['max_retries']}, after {first}, then {retry['factor']:g} times longer up to {cap}"
    )


def mapping(value: Mapping[str, Any]) -> str:
    return plain_text(value) if value else "-"


def times(moments: Sequence[datetime]) -> str:
    return ", ".join(map(table_text, moments)) or "-"


NAME = Column("name")
ENABLED = Column(
    "enabled", format=on_or_off, style=lambda enabled: "green" if enabled else "yellow"
)
SCHEDULE = Column("schedule_words", "SCHEDULE")
NEXT = Column("next_at", "NEXT")
RUNS = Column("options", "RUNS", format=what_it_runs)
KIND = Column("handler", "KIND")
SYNC_STATE = Column(
    "sync_state", "SYNC", style=lambda state: "" if state == "applied" else "bold yellow"
)

OUTCOME_STYLES = {
    Outcome.SUCCEEDED: "green",
    Outcome.FAILED: "red",
    Outcome.TIMED_OUT: "red",
    Outcome.SKIPPED: "dim",
    Outcome.CANCELED: "dim",
}
LAST = Column("last_outcome", "LAST", style=lambda outcome: OUTCOME_STYLES.get(outcome, ""))

LIST = [
    NAME,
    ENABLED,
    SCHEDULE,
    NEXT,
    LAST,
    Column("last_ended_at", "ENDED"),
    KIND,
    Column("source"),
    SYNC_STATE,
]
APPLIED = {"source": "file", "sync_state": "applied", "handler": "command"}
"""What is so for most jobs, and is left out of a list if it is so for all."""


def terminal_list(jobs: Sequence[Mapping[str, Any]], now: datetime) -> list[Column]:
    """`LIST` with each job on one line of 80 characters, if that is possible: times are short, long names are cut."""
    short = {
        "name": Column("name", shrinks=True),
        "enabled": replace(ENABLED, title="ON"),
        "schedule_words": Column("schedule_words", "SCHEDULE", shrinks=True),
        "next_at": Column("next_at", "NEXT", format=short_time(now)),
        "last_ended_at": Column("last_ended_at", "ENDED", format=ago(now)),
    }
    return [
        short.get(column.key, column)
        for column in LIST
        if any(job[column.key] != APPLIED.get(column.key) for job in jobs)
    ]


def emit_list(
    invocation: Invocation,
    views: "Sequence[JobView]",
    *,
    last_ends: "Mapping[str, LastEnd] | None" = None,
    empty: str = "no jobs",
) -> None:
    """Jobs as `LIST`; on a terminal as `terminal_list`. With `last_ends` each has its last result."""
    jobs = [{**view.as_dict(), **_last(view, last_ends or {})} for view in views]
    is_read = invocation.output is OutputFormat.TABLE and is_terminal(sys.stdout)
    columns = terminal_list(jobs, SystemClock().now()) if is_read else LIST
    emit(invocation, jobs, columns=columns, empty=empty)


def _last(view: "JobView", last_ends: "Mapping[str, LastEnd]") -> dict[str, Any]:
    last = last_ends.get(view.name)
    return {
        "last_run_id": last and last.run_id,
        "last_outcome": last and last.outcome,
        "last_ended_at": last and last.finished_at,
    }


SUMMARY = [NAME, RUNS, SCHEDULE, NEXT, ENABLED]
OBJECT = [
    NAME,
    Column("description", format=lambda text: text or "-"),
    ENABLED,
    KIND,
    RUNS,
    Column("arguments", format=mapping),
    SCHEDULE,
    Column("next_times", "NEXT", format=times),
    Column("spread_seconds", "SPREAD", format=format_duration),
    Column("misfire"),
    Column("catchup_window_seconds", "CATCHUP WINDOW", format=format_duration),
    Column("timeout_seconds", "TIMEOUT", format=format_duration),
    Column("retry", "RETRIES", format=retries),
    Column("concurrency_policy"),
    Column("max_concurrent"),
    Column("concurrency_key"),
    Column("max_concurrent_per_key"),
    Column("priority"),
    Column("tags", format=format_list),
    Column("source"),
    SYNC_STATE,
]
