"""Kinds of commands: single commands, groups, and the root group, which loads a command only when it is called."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import click
from click.shell_completion import CompletionItem

from tsuzuki.cli.options import GLOBAL_OPTIONS
from tsuzuki.model.errors import ConfigurationError, TsuzukiError, UsageError
from tsuzuki.model.import_string import load
from tsuzuki.model.suggestion import did_you_mean

PROGRAM = "tsuzuki"
NOUNS = ("job", "run", "worker")
"""Those whose verbs are tried without a noun, or with another one."""

USUAL_NAMES = {"start": "up", "serve": "web", "status": "doctor", "help": "--help"}
"""What other programs call it."""

COMPLETE_VARIABLE = "_TSUZUKI_COMPLETE"
"""The variable through which a completion script asks us what can be written next."""


class Command(click.Command):
    """A leaf that takes the global options beside its own."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        return [*super().get_params(ctx), *GLOBAL_OPTIONS]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_options(ctx, formatter)
        write_global_options(ctx, formatter)


class Group(click.Group):
    """A noun: its verbs take the global options, and a mistyped verb is answered with a guess."""

    command_class = Command
    group_class = type

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        return [*super().get_params(ctx), *GLOBAL_OPTIONS]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_options(ctx, formatter)
        write_global_options(ctx, formatter)

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """In the order in which they were written down."""
        return list(self.commands)

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Each verb with its whole first line, folded and never cut."""
        rows = [
            (name, (command.help or "").partition("\n")[0])
            for name, command in self.commands.items()
            if not command.hidden
        ]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        looks_like_option = name.startswith("-")
        if not (looks_like_option or ctx.resilient_parsing or self.get_command(ctx, name)):
            raise UsageError(
                f"unknown command '{ctx.command_path} {name}'",
                hint=self._nearest_command(ctx, name),
            )
        return super().resolve_command(ctx, args)

    def _nearest_command(self, ctx: click.Context, name: str) -> str:
        """What was probably meant: a verb of another noun, what other programs call so, or a mistyped one."""
        if name.isdecimal() and self.get_command(ctx, "show"):
            return f'Did you mean "{ctx.command_path} show {name}"?'
        if elsewhere := _with_verb(ctx.find_root(), name):
            return f"Available: {', '.join(elsewhere)}"
        if ctx.parent is None and name in USUAL_NAMES:
            return f'Did you mean "{USUAL_NAMES[name]}"?'
        return (
            did_you_mean(name, self.list_commands(ctx)).strip()
            or f"List the commands with: {ctx.command_path} --help"
        )


def _with_verb(root: click.Context, verb: str) -> list[str]:
    """The commands with this verb."""
    if not isinstance(root.command, Group):
        return []
    groups = {noun: root.command.get_command(root, noun) for noun in NOUNS}
    return [
        f"{root.command_path} {noun} {verb}"
        for noun, group in groups.items()
        if isinstance(group, Group) and verb in group.commands
    ]


def write_global_options(ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """What every command takes stands last in its help, in a section of its own."""
    with formatter.section("Global options"):
        formatter.write_dl([option.help_row(ctx) for option in GLOBAL_OPTIONS])


@dataclass(frozen=True)
class LazyCommand:
    """Where a command is, and the line that stands for it until it is needed."""

    target: str
    """`package.module:attribute`."""

    summary: str

    def load(self) -> click.Command:
        command = load(self.target)
        if not isinstance(command, click.Command):
            raise TypeError(f"{self.target} is not a command")
        return command


@dataclass(frozen=True)
class CollectorCommand(LazyCommand):
    """A command that a collector brings, maybe of another distribution. If it cannot be loaded the error
    names it."""

    def load(self) -> click.Command:
        try:
            return super().load()
        except (Exception, SystemExit) as problem:
            raise ConfigurationError(
                f"cannot load the command {self.target}: {type(problem).__name__}: {problem}",
                hint="Repair or uninstall the package that provides it.",
                code="collector_refused",
            ) from problem


@dataclass(frozen=True)
class RefusedCommand(LazyCommand):
    """Stands for the command of a collector that cannot be used."""

    problem: TsuzukiError

    def load(self) -> click.Command:
        raise self.problem


class LazyGroup(Group):
    """The root: a command's module is imported when that command is called. `more_commands` are looked
    up only if a name is not in the fixed table, or if all are listed."""

    def __init__(
        self,
        *,
        lazy_commands: Mapping[str, LazyCommand],
        more_commands: Callable[[], Mapping[str, LazyCommand]] = dict,
        **attributes: Any,
    ) -> None:
        super().__init__(**attributes)
        self.lazy_commands = lazy_commands
        self.more_commands = more_commands

    def all_commands(self) -> dict[str, LazyCommand]:
        return {**self.more_commands(), **self.lazy_commands}

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(self.all_commands())

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        found = self.lazy_commands.get(cmd_name) or self.more_commands().get(cmd_name)
        return found.load() if found else None

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, command.summary) for name, command in self.lazy_commands.items()]
            )
        collectors = [
            (name, command.summary)
            for name, command in self.more_commands().items()
            if name not in self.lazy_commands
        ]
        if collectors:
            with formatter.section("Collectors"):
                formatter.write_dl(collectors)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        names = [
            CompletionItem(name, help=command.summary)
            for name, command in self.all_commands().items()
            if name.startswith(incomplete)
        ]
        return names + click.Command.shell_complete(self, ctx, incomplete)
