"""`tsuzuki job cursor`: show and reset the cursors of paged collections."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

from tsuzuki.cli.application import open_application
from tsuzuki.cli.commands import Group
from tsuzuki.cli.completions import job_names
from tsuzuki.cli.invocation import Invocation, OutputFormat
from tsuzuki.cli.terminal.output import Column, emit, write
from tsuzuki.model.errors import NotFound, UsageError

if TYPE_CHECKING:
    from tsuzuki.wiring.application import Application

Answer = TypeVar("Answer")
CURSORS = [
    Column("job"),
    Column("start_index", align="right"),
    Column("is_exhausted", "EXHAUSTED"),
    Column("is_current", "CURRENT"),
    Column("last_updated_at", "UPDATED"),
    Column("query_set_hash", "QUERIES", format=lambda text: str(text)[:16]),
]


class JobCursor(Protocol):
    """A cursor of a job; `is_current` if it belongs to the queries that the job has now."""

    def as_dict(self) -> dict[str, Any]:
        """A value for each key of `CURSORS`."""


class JobCursors(Protocol):
    """The cursors of a collector's jobs. Both methods raise `NotFound` for a job that is not the collector's and has
    no cursor."""

    def cursors(self, job_name: str | None = None, /) -> Sequence[JobCursor]:
        """Every cursor, or the cursors of one job."""

    def reset_cursors(self, job_name: str, /) -> int:
        """Delete every cursor of a job and return how many there were."""


@click.group(cls=Group)
def cursor() -> None:
    """Show or reset the cursors at which collections resume.

    \b
    tsuzuki job cursor ls
    """


@cursor.command()
@click.argument("name", required=False, shell_complete=job_names())
@click.pass_obj
def ls(invocation: Invocation, name: str | None) -> None:
    """List the cursors of one job, or of all jobs.

    A cursor that is not current belongs to an earlier query of the job.

    \b
    tsuzuki job cursor ls novelties
    """
    with open_application(invocation) as application:
        found = _ask_collectors(application, lambda collector: collector.cursors(name))
    emit(
        invocation,
        [view.as_dict() for views in found for view in views],
        columns=CURSORS,
        empty="no cursors yet; the first run of a paged collection creates one",
    )


@cursor.command()
@click.argument("name", shell_complete=job_names())
@click.option(
    "--yes",
    "-y",
    is_flag=True,
    help="Skip the confirmation (required, because a reset cannot be undone).",
)
@click.pass_obj
def reset(invocation: Invocation, name: str, yes: bool) -> None:
    """Delete a job's cursors: its next run starts from the beginning.

    Collected items and records of sent messages are kept.

    \b
    tsuzuki job cursor reset novelties --yes
    """
    if not yes:
        raise UsageError(
            f"resetting every cursor of {name} requires --yes",
            hint="Nothing was changed. Add --yes to reset them.",
            code="not_confirmed",
        )
    with open_application(invocation) as application:
        counts = _ask_collectors(application, lambda collector: collector.reset_cursors(name))
    if invocation.output is OutputFormat.TABLE:
        write(f"Reset {sum(counts)} cursor(s) for job: {name}")
    else:
        emit(invocation, {"job": name, "reset": sum(counts)})


def _ask_collectors(
    application: "Application", question: Callable[[JobCursors], Answer]
) -> list[Answer]:
    """The answers of the collectors that have cursors. Raises `NotFound` if each of them refuses the job."""
    answers: list[Answer] = []
    refusals: list[NotFound] = []
    for cursors in _collectors_with_cursors(application):
        try:
            answers.append(question(cursors))
        except NotFound as problem:
            refusals.append(problem)
    if refusals and not answers:
        raise refusals[0]
    return answers


def _collectors_with_cursors(application: "Application") -> Iterator[JobCursors]:
    from tsuzuki.wiring.collectors import collector_records, guarded

    records = collector_records()
    for name, collector in records.usable.items():
        if collector.cursors is not None and name not in application.refused_collectors:
            load = partial(collector.load, collector.cursors)
            yield guarded(name, records.distributions.get(name), load)(application)
