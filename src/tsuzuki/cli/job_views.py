"""Jobs as a reader sees them: the columns, and the words for what a job does and by which rules."""

import shlex
from collections.abc import Mapping
from typing import Any

from tsuzuki.cli.output import Column
from tsuzuki.cli.values import plain_text
from tsuzuki.cli.words import duration_words, list_words


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
    first, cap = duration_words(retry["initial_seconds"]), duration_words(retry["cap_seconds"])
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
STANDING = Column("standing", style=lambda standing: "" if standing == "applied" else "bold yellow")

LIST = [NAME, ENABLED, SCHEDULE, NEXT, KIND, Column("source"), STANDING]
SUMMARY = [NAME, RUNS, SCHEDULE, NEXT, ENABLED]
OBJECT = [
    NAME,
    Column("description", format=lambda text: text or "-"),
    ENABLED,
    KIND,
    RUNS,
    Column("arguments", format=mapping),
    SCHEDULE,
    Column("next_times", "NEXT", format=list_words),
    Column("misfire"),
    Column("catchup_window_seconds", "CATCHUP WINDOW", format=duration_words),
    Column("timeout_seconds", "TIMEOUT", format=duration_words),
    Column("retry", "RETRIES", format=retries),
    Column("concurrency_policy"),
    Column("max_concurrent"),
    Column("concurrency_key"),
    Column("max_concurrent_per_key"),
    Column("priority"),
    Column("tags", format=list_words),
    Column("source"),
    STANDING,
]
