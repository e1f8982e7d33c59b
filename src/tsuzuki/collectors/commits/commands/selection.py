"""The options with which commands of `tsuzuki commits` select commits."""

import re
from calendar import monthrange
from collections.abc import Callable, Iterator
from datetime import date
from typing import TYPE_CHECKING, Any

import click

from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.terminal.output import say
from tsuzuki.model.errors import UsageError

if TYPE_CHECKING:
    from tsuzuki.collectors.commits.service.report import LeftOut
    from tsuzuki.collectors.commits.service.selection import CommitSelection

_DAY = re.compile(r"([0-9]{4})-([0-9]{2})(?:-([0-9]{2}))?")


class Day(click.ParamType[date]):
    """A day, YYYY-MM-DD; or a month, YYYY-MM, which stands for its first or its last day."""

    name = "day"

    def __init__(self, *, last_of_month: bool) -> None:
        self._last_of_month = last_of_month

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> date:
        del ctx
        if isinstance(value, date):
            return value
        try:
            return self._day(value.strip())
        except ValueError as problem:
            option = param.opts[0] if param else "this option"
            raise UsageError(
                f"{option} requires a day, not {value!r}: {problem}",
                code="not_a_day",
                hint=f"Write it as YYYY-MM-DD, such as {option} 2024-02-29",
            ) from None

    def _day(self, text: str) -> date:
        match = _DAY.fullmatch(text)
        if match is None:
            raise ValueError("it does not have the form YYYY-MM-DD")
        year, month = int(match[1]), int(match[2])
        first = date(year, month, 1)
        if match[3]:
            return date(year, month, int(match[3]))
        return first.replace(day=monthrange(year, month)[1]) if self._last_of_month else first


_OPTIONS = (
    click.option(
        "--since", type=Day(last_of_month=False), metavar="YYYY-MM-DD", help="First day (UTC)."
    ),
    click.option(
        "--until",
        type=Day(last_of_month=True),
        metavar="YYYY-MM-DD",
        help="Last day, inclusive (UTC).",
    ),
    click.option(
        "--author",
        "authors",
        multiple=True,
        metavar="ADDRESS|NAME",
        help="Show only commits by this author. Can be repeated.",
    ),
    click.option(
        "--project",
        "projects",
        multiple=True,
        metavar="PROJECT",
        help="Show only commits of this project. Can be repeated.",
    ),
    click.option(
        "--branch",
        "branches",
        multiple=True,
        metavar="BRANCH",
        help="Show only commits on this branch. Can be repeated.",
    ),
    click.option(
        "--team",
        "teams",
        multiple=True,
        metavar="TEAM",
        help="Show only commits by this team's members. Can be repeated.",
    ),
    click.option(
        "--merges",
        type=click.Choice(["exclude", "include", "only"]),
        default="exclude",
        help="Include or exclude merge commits, or show only them (their lines already count in "
        "the merged commits).",
    ),
    click.option("--bots", is_flag=True, help="Include commits by bots."),
    click.option(
        "--identities",
        type=click.Choice(["joined", "written"]),
        default="joined",
        help="Group authors by person, or by name and address as written.",
    ),
    click.option(
        "--exclude-path",
        "exclude_paths",
        multiple=True,
        metavar="GLOB",
        help="Exclude changes to paths matching this pattern. Can be repeated.",
    ),
    click.option(
        "--no-generated",
        is_flag=True,
        help="Exclude lock files, vendored and generated code, where paths are known.",
    ),
)

DEFAULTS = {"merges": "exclude", "identities": "joined"}
"""What an option is if it was not given; the others are empty then."""


def selection_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of a selection."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def selection_of(options: dict[str, Any]) -> "CommitSelection":
    """The selection that the options stand for."""
    from tsuzuki.collectors.commits.service.selection import CommitSelection, Identities, Merges

    given = dict(options)
    given["merges"] = Merges(given["merges"])
    given["identities"] = Identities(given["identities"])
    given["generated"] = not given.pop("no_generated")
    return CommitSelection(**given)


def is_narrowed(options: dict[str, Any]) -> bool:
    """Whether less than everything is asked for."""
    return any(value and value != DEFAULTS.get(name) for name, value in options.items())


def tell_left_out(invocation: Invocation, left_out: "LeftOut") -> None:
    """Say on stderr what a report does not count, and how to see it."""
    for sentence in _sentences(left_out):
        say(invocation, sentence)


def _sentences(left_out: "LeftOut") -> Iterator[str]:
    parts, options = [], []
    if left_out.merges:
        parts.append(_count(left_out.merges, "merge"))
        options.append("--merges include")
    if left_out.bots:
        parts.append(_count(left_out.bots, "bot commit"))
        options.append("--bots")
    if parts:
        yield f"{' and '.join(parts)} excluded; include them with {' '.join(options)}."
    if left_out.parents_unknown:
        yield (
            f"The parents of {_count(left_out.parents_unknown, 'commit')} are not known yet, "
            "so merges among them are included; the next collection fetches them."
        )
    if left_out.paths:
        yield f"{_count(left_out.paths, 'path')} excluded."
    if left_out.paths_unknown:
        yield (
            f"The paths of {_count(left_out.paths_unknown, 'commit')} are not known, so all "
            "their changes are included."
        )


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
