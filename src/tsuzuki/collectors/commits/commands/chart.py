"""`tsuzuki commits chart`: commits per month and author, as bars in the terminal or as an SVG file."""

import os
import shutil
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tsuzuki.cli.application import open_application
from tsuzuki.cli.commands import Command
from tsuzuki.cli.invocation import Invocation, OutputFormat
from tsuzuki.cli.terminal.output import Column, emit, is_terminal, say, write
from tsuzuki.collectors.commits.commands.selection import (
    is_narrowed,
    selection_of,
    selection_options,
    tell_left_out,
)
from tsuzuki.collectors.commits.commands.service import commits_service
from tsuzuki.model.errors import FileUnusable, UsageError

if TYPE_CHECKING:
    from tsuzuki.collectors.commits.service.chart import Chart

COLUMNS = [Column("month"), Column("author"), Column("commits", align="right")]
WIDTH_WITHOUT_TERMINAL = 80


@click.command(cls=Command)
@click.option(
    "--top", type=click.IntRange(1, 20), default=5, help="Number of authors to show by name."
)
@click.option(
    "--months", type=click.IntRange(1, 600), default=12, help="Number of most recent months."
)
@click.option(
    "--svg", "file", metavar="FILE", help="Write an SVG picture to this file, or to stdout with -."
)
@selection_options
@click.pass_obj
def chart(
    invocation: Invocation, /, top: int, months: int, file: str | None, **options: Any
) -> None:
    """Draw commits per month and author. Other authors are drawn together.

    \b
    tsuzuki commits chart --months 24
    tsuzuki commits chart --since 2024-01-01 --svg commits.svg
    """
    selection = selection_of(options)
    with open_application(invocation) as application:
        found = commits_service(application).reports.chart(
            selection, top=top, months=months, tell=partial(say, invocation)
        )
    if file is not None:
        _write_svg(invocation, found, file)
    elif invocation.output is OutputFormat.TABLE and found.months:
        _draw(invocation, found)
    else:
        empty = "No matching commits." if is_narrowed(options) else "No commits yet."
        emit(invocation, _rows(found), columns=COLUMNS, empty=empty)
    if found.months_before:
        say(
            invocation,
            f"{found.months_before} older months with commits are not shown. Show more with "
            "--months.",
        )
    tell_left_out(invocation, found.left_out)


def _rows(chart: "Chart") -> list[dict[str, Any]]:
    return [
        {"month": month, "author": series.author, "commits": series.commits[number]}
        for number, month in enumerate(chart.months)
        for series in chart.series
        if series.commits[number]
    ]


def _draw(invocation: Invocation, chart: "Chart") -> None:
    from tsuzuki.collectors.commits.commands.bars import bars

    fits = is_terminal(sys.stdout)
    width = shutil.get_terminal_size().columns if fits else WIDTH_WITHOUT_TERMINAL
    encoding = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("-", "")
    drawn = bars(
        chart,
        width=width,
        may_cut=fits,
        is_coloured=fits and invocation.color,
        block="█" if encoding == "utf8" else "#",
    )
    for line in drawn:
        write(line)


def _write_svg(invocation: Invocation, chart: "Chart", file: str) -> None:
    from tsuzuki.collectors.commits.commands.svg import svg

    picture = svg(chart)
    if file == "-":
        write(picture, ends_line=False)
        return
    _replace(invocation.cwd / file, picture.encode(), said=file)
    say(invocation, f"Written: {file}")


def _replace(path: Path, content: bytes, *, said: str) -> None:
    """Put the content in place of the file in one step: a reader sees the old file or the new one."""
    target = path.resolve()
    if target.exists() and not target.is_file():
        raise UsageError(
            f"{said} is not a file",
            code="not_a_file",
            hint="Name a file, such as --svg commits.svg, or print the picture with --svg -",
        )
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(target)
    except OSError as error:
        raise FileUnusable(
            f"cannot write {said}: {error.strerror}",
            code="output_unwritable",
            hint="Name a file in an existing folder that you may write to.",
        ) from error
    finally:
        with suppress(OSError):
            temporary.unlink()
