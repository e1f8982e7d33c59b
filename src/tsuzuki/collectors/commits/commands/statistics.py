"""`tsuzuki commits stats` and `export`: statistics and export of collected commits."""

from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import click

from tsuzuki.cli.application import open_application
from tsuzuki.cli.commands import Command
from tsuzuki.cli.invocation import Invocation, OutputFormat
from tsuzuki.cli.terminal.output import Column, emit, say, write
from tsuzuki.collectors.commits.commands.selection import (
    is_narrowed,
    selection_of,
    selection_options,
    tell_left_out,
)
from tsuzuki.collectors.commits.commands.service import commits_service
from tsuzuki.model.errors import UsageError
from tsuzuki.model.suggestion import did_you_mean

if TYPE_CHECKING:
    from tsuzuki.collectors.commits.service.statistics import Dimension, Statistics

NUMBERS = ("commits", "additions", "deletions", "project_id")


@click.command(cls=Command)
@click.option(
    "--by",
    "text",
    default="month",
    metavar="KEY,…",
    help="Group by: day, week, month, quarter, author, team, project, branch.",
)
@click.option("--sort", metavar="KEY[:asc|desc]", help="Sort by a grouping column or a number.")
@click.option("--top", type=click.IntRange(min=1), metavar="N", help="Show only the first N rows.")
@click.option("--total", "only_total", is_flag=True, help="Show only the total, as one object.")
@selection_options
@click.pass_obj
def stats(
    invocation: Invocation, /, text: str, sort: str | None, top: int | None, **options: Any
) -> None:
    """Count commits and changed lines.

    A commit on several branches of a project counts once; grouped by branch, it counts on each. Merges and
    bots are excluded by default.

    \b
    tsuzuki commits stats --by month,author
    tsuzuki commits stats --by author --sort commits --top 10 --since 2024-01-01
    """
    only_total = options.pop("only_total")
    by, selection = _dimensions(text), selection_of(options)
    with open_application(invocation) as application:
        found = commits_service(application).reports.statistics(
            by, selection, sort=sort, top=top, tell=partial(say, invocation)
        )
    if only_total:
        emit(invocation, _total(invocation, found))
        tell_left_out(invocation, found.left_out)
        return
    rows = list(found.rows)
    columns = [
        Column(key, align="right" if key in NUMBERS else "left") for key in (rows or [{}])[0]
    ]
    if rows and invocation.output is OutputFormat.TABLE:
        rows.append({**_total_labels(rows[0]), **found.total})
    emit(
        invocation,
        rows,
        columns=columns,
        empty="No matching commits." if is_narrowed(options) else "No commits yet.",
    )
    _explain(invocation, found, by)


def _total(invocation: Invocation, found: "Statistics") -> dict[str, Any]:
    """The total; for a program with what it leaves out, which a person is told on stderr."""
    if invocation.output in (OutputFormat.JSON, OutputFormat.JSONL):
        return {**found.total, "left_out": asdict(found.left_out)}
    return dict(found.total)


def _total_labels(row: dict[str, Any]) -> dict[str, str]:
    """What stands before the numbers of the total row."""
    return {key: "" if number else "TOTAL" for number, key in enumerate(row)}


def _explain(invocation: Invocation, found: "Statistics", by: "list[Dimension]") -> None:
    from tsuzuki.collectors.commits.service.statistics import NO_TEAM

    if len(found.rows) < found.row_count:
        say(
            invocation,
            f"{len(found.rows)} of {found.row_count} rows; the total includes all of them.",
        )
    if "branch" in by and found.rows:
        say(
            invocation,
            "A commit on several branches counts on each of them, and once in the total.",
        )
    if "team" in by and {row["team"] for row in found.rows} == {NO_TEAM}:
        say(
            invocation,
            "There are no teams yet. Define them in the file named by `people` under `commits:`.",
        )
    elif "team" in by and found.rows:
        say(invocation, "A person in several teams counts in each of them, and once in the total.")
    tell_left_out(invocation, found.left_out)


@click.command(cls=Command)
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "json", "jsonl"]),
    default="csv",
    help="Output format.",
)
@selection_options
@click.pass_obj
def export(invocation: Invocation, /, form: str, **options: Any) -> None:
    """Export every stored commit, once for each branch that contains it.

    \b
    tsuzuki commits export --format csv --branch main
    """
    from tsuzuki.collectors.commits.service.export_text import ExportFormat, export_text

    selection = selection_of(options)
    with open_application(invocation) as application:
        rows = _started(
            commits_service(application).reports.export(selection, tell=partial(say, invocation))
        )
        for piece in export_text(rows, ExportFormat(form)):
            write(piece, ends_line=False)


def _started(rows: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The same rows with the first one read, so that what is refused is refused before a line is printed."""
    first = list(islice(rows, 1))
    return chain(first, rows)


def _dimensions(text: str) -> "list[Dimension]":
    from tsuzuki.collectors.commits.service.statistics import Dimension

    words = [word.strip().lower() for word in text.split(",") if word.strip()]
    known = [dimension.value for dimension in Dimension]
    strange = [word for word in words if word not in known]
    if strange or not words or len(set(words)) != len(words):
        guess = did_you_mean(strange[0], known) if strange else ""
        raise UsageError(
            f"--by accepts {', '.join(known)}, each once, not {text!r}",
            hint=f"{guess}For example: --by month,author",
        )
    return [Dimension(word) for word in words]
