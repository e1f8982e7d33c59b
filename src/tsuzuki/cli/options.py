"""The options that every command accepts, before or after its name; if given twice, the later one applies."""

from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

import click

from tsuzuki.cli.arguments import StoredId
from tsuzuki.cli.invocation import Invocation, OutputFormat

EnumT = TypeVar("EnumT", bound=Enum)


class EnumChoice(click.Choice[EnumT]):
    """One member of an enum, written as its value in upper or lower case."""

    def __init__(self, members: type[EnumT]) -> None:
        super().__init__(members, case_sensitive=False)

    def normalize_choice(self, choice: object, ctx: click.Context | None) -> str:
        word = choice.value if isinstance(choice, Enum) else choice
        return super().normalize_choice(word, ctx)


class GlobalOption(click.Option):
    """An option whose value is kept in the `Invocation`, in the field that bears its name."""

    def __init__(self, *declarations: str, **attributes: Any) -> None:
        super().__init__(
            declarations, expose_value=False, callback=_keep, show_default=False, **attributes
        )

    def get_help_record(self, ctx: click.Context) -> None:
        """No row among a command's own options."""

    def help_row(self, ctx: click.Context) -> tuple[str, str]:
        return super().get_help_record(ctx) or ("", "")


def _keep(context: click.Context, option: click.Parameter, value: object) -> None:
    """What was not said leaves the invocation as the outer command had it."""
    invocation = context.ensure_object(Invocation)
    if value is not None and value is not False:
        said: dict[str, Any] = {str(option.name): value}
        context.obj = replace(invocation, **said)


GLOBAL_OPTIONS: tuple[GlobalOption, ...] = (
    GlobalOption(
        "--config",
        "-c",
        "config_file",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Configuration file (default: tsuzuki.yaml in this folder or a parent).",
    ),
    GlobalOption(
        "--database-url",
        metavar="URL",
        help="Database URL; overrides the environment and the file.",
    ),
    GlobalOption(
        "--output",
        "-o",
        type=EnumChoice(OutputFormat),
        metavar="FORMAT",
        help="Output format: table (default), json, jsonl or plain.",
    ),
    GlobalOption("--no-color", is_flag=True, help="Disable colors, like NO_COLOR."),
    GlobalOption("--verbose", "-v", is_flag=True, help="Show more detail, and tracebacks of bugs."),
    GlobalOption("--quiet", "-q", is_flag=True, help="Print only data and errors."),
)


limit_option = click.option(
    "--limit", type=click.IntRange(1, 1000), default=50, help="Maximum number of results."
)
before_id_option = click.option(
    "--before-id", type=StoredId(), metavar="ID", help="Show only entries older than this ID."
)


def read_global_options(arguments: Sequence[str], invocation: Invocation) -> Invocation:
    """Read the global options out of a command line that may be wrong anywhere else.

    A failure must be told in the format that was asked for, even when the failure is the command
    line itself and nothing after the wrong word has been read.
    """
    reader = click.Command("global-options", params=[*GLOBAL_OPTIONS], add_help_option=False)
    context = reader.make_context(
        "global-options",
        [*arguments],
        obj=invocation,
        resilient_parsing=True,
        ignore_unknown_options=True,
        allow_extra_args=True,
    )
    return context.ensure_object(Invocation)
