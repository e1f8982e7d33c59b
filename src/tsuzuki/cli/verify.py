"""`tsuzuki verify`: compare stored data with its source and report what is missing."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import click

from tsuzuki.cli.application import open_application
from tsuzuki.cli.commands import Command
from tsuzuki.cli.errors import ExitWith
from tsuzuki.cli.invocation import Invocation, OutputFormat
from tsuzuki.cli.terminal.output import Column, emit, say
from tsuzuki.cli.terminal.progress import ProgressInterval
from tsuzuki.model.clock import SystemClock
from tsuzuki.model.verification import PartResult
from tsuzuki.wiring.collectors import parts_verified  # noqa: TID253 -- the records are light, and its help lists them

COLUMNS = [
    Column("part"),
    Column(
        "ok",
        "RESULT",
        format=lambda is_ok: "ok" if is_ok else "FAULTY",
        style=lambda is_ok: "green" if is_ok else "bold red",
    ),
    Column("subjects", align="right"),
    Column("compared", align="right"),
    Column("faulty", align="right"),
    Column("faults", align="right"),
]


@click.command(cls=Command)
@click.argument("parts", nargs=-1, type=click.Choice(parts_verified()), metavar="[PART]...")
@click.option(
    "--since",
    type=click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"]),
    metavar="DATE",
    help="Start of the time range in UTC for ticks and posts (default: 30 days ago).",
)
@click.option(
    "--until",
    type=click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"]),
    metavar="DATE",
    help="End of the time range in UTC for ticks (default: last planned tick).",
)
@click.option(
    "--calls",
    type=click.IntRange(0, 10_000),
    default=20,
    help="Maximum number of calls to each source that has a quota.",
)
@click.pass_obj
def verify(
    invocation: Invocation,
    /,
    parts: tuple[str, ...],
    since: datetime | None,
    until: datetime | None,
    calls: int,
) -> None:
    """Compare stored data with its source and report what is missing.

    Verifies all parts by default and changes nothing. Exit code 1 if anything is missing, or if a source
    could not be compared.

    \b
    tsuzuki verify
    tsuzuki verify ticks --since 2026-11-01 --until 2026-11-08
    """
    from tsuzuki.services.verification import Wanted

    wanted = Wanted(parts=parts, since=_in_utc(since), until=_in_utc(until), calls_max=calls)
    with open_application(invocation) as application:
        results = [*application.verification.verify(wanted, on_progress=_progress(invocation))]
    hide = invocation.hide_secrets
    emit(invocation, [_without_secrets(one.as_dict(), hide) for one in results], columns=COLUMNS)
    if invocation.output is OutputFormat.TABLE:
        for result in results:
            _say_details(invocation, result)
    if any(not result.is_ok for result in results):
        raise ExitWith(1)


def _say_details(invocation: Invocation, result: PartResult) -> None:
    for line in (*result.lines(), *result.notes):
        say(invocation, invocation.hide_secrets(f"{result.part}: {line}"))
    if more := result.faults - sum(len(one.named) for one in result.shown):
        say(invocation, f"{result.part}: {more:,} more")


def _without_secrets(value: Any, hide: Callable[[str], str]) -> Any:
    """The data with every text in it hidden where it holds a secret."""
    match value:
        case str():
            return hide(value)
        case list():
            return [_without_secrets(one, hide) for one in value]
        case dict():
            return {key: _without_secrets(one, hide) for key, one in value.items()}
        case _:
            return value


def _progress(invocation: Invocation) -> Callable[[str, int], None]:
    """Says every few seconds how far the verification is."""
    interval = ProgressInterval(SystemClock())
    compared: dict[str, int] = {}

    def on_progress(part: str, more: int) -> None:
        compared[part] = compared.get(part, 0) + more
        if interval.is_over():
            say(invocation, f"Verifying {part}: {compared[part]:,} compared so far.")

    return on_progress


def _in_utc(moment: datetime | None) -> datetime | None:
    return None if moment is None else moment.replace(tzinfo=UTC)
