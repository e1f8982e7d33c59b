"""Jobs as a reader sees them: the columns, and the words for what a job does and by which rules."""

import shlex
from collections.abc import Mapping
from typing import Any

from tsuzuki.cli.formatting import format_duration, format_list
from tsuzuki.cli.output import Column
from tsuzuki.cli.values import plain_text


def on_or_off(enabled: bool) -> str:
    return "on" if enabled else "off"


def what_it_runs(options: Mapping[str, Any]) -> str:
    """A command as it would be typed, a function by its name, any other kind by its options."""
    if "function" in options:
        return str(options["function"])
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


NAME = Column("name")
ENABLED = Column(
    "enabled", format=on_or_off, style=lambda enabled: "green" if enabled else "yellow"
)
SCHEDULE = Column("schedule_words", "SCHEDULE")
NEXT = Column("next_at", "NEXT")
RUNS = Column("options", "RUNS", format=what_it_runs)
KIND = Column("handler", "KIND")
SYNC_STATE = Column(
    "standing", style=lambda standing: "" if standing == "applied" else "bold yellow"
)

LIST = [NAME, ENABLED, SCHEDULE, NEXT, KIND, Column("source"), SYNC_STATE]
SUMMARY = [NAME, RUNS, SCHEDULE, NEXT, ENABLED]
OBJECT = [
    NAME,
    Column("description", format=lambda text: text or "-"),
    ENABLED,
    KIND,
    RUNS,
    Column("arguments", format=mapping),
    SCHEDULE,
    Column("next_times", "NEXT", format=format_list),
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
