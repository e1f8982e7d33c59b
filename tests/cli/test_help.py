"""Help: every command says what it does, and its examples are commands that can be read."""

import shlex
from collections.abc import Iterator

import click

from tsuzuki.cli.commands import Group
from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.options import GlobalOption
from tsuzuki.cli.root import ROOT


def every_command(
    command: click.Command = ROOT, path: str = "tsuzuki"
) -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command, **ROOT.context_settings)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield from every_command(child, f"{path} {name}")


COMMANDS = dict(every_command())
EXAMPLES = [
    line.strip()
    for command in COMMANDS.values()
    for line in (command.help or "").splitlines()
    if line.strip().startswith("tsuzuki ")
]


def own_parameters(command: click.Command) -> list[click.Parameter]:
    return [param for param in command.params if not isinstance(param, GlobalOption)]


def words_left(context: click.Context) -> list[str]:
    """What a command has not read itself, and hands to a verb of its own."""
    return [*context._protected_args, *context.args]


def test_a_command_says_in_one_line_what_it_does() -> None:
    summaries = {
        path: (command.help or "").partition("\n")[0] for path, command in COMMANDS.items()
    }
    assert [path for path, said in summaries.items() if not said.endswith(".")] == []
    assert [path for path, said in summaries.items() if len(said) > 90] == []


def test_a_command_that_takes_something_shows_an_example() -> None:
    lacking = [
        path
        for path, command in COMMANDS.items()
        if command is not ROOT
        and (own_parameters(command) or isinstance(command, click.Group))
        and f"{path} " not in (command.help or "")
    ]
    assert lacking == []


def test_every_option_is_explained() -> None:
    unexplained = [
        f"{path} {parameter.opts[0]}"
        for path, command in COMMANDS.items()
        for parameter in own_parameters(command)
        if isinstance(parameter, click.Option) and not parameter.help
    ]
    assert unexplained == []


def test_an_example_can_be_read() -> None:
    assert len(EXAMPLES) > 15
    assert {line: why for line in EXAMPLES if (why := unreadable(line))} == {}


def unreadable(example: str) -> str | None:
    """Why it cannot be read; None if it can."""
    _, *words = shlex.split(example)
    try:
        context = ROOT.make_context("tsuzuki", words, obj=Invocation())
        while isinstance(context.command, Group) and (rest := words_left(context)):
            name, command, words = context.command.resolve_command(context, rest)
            if command is None:
                return f"no command {name}"
            context = command.make_context(name, words, parent=context)
    except click.ClickException as problem:
        return problem.format_message()
    left = words_left(context)
    return f"not read: {left}" if left else None


def test_no_sentence_of_a_help_is_cut() -> None:
    cut = []
    for path, command in COMMANDS.items():
        context = click.Context(command, terminal_width=80, **ROOT.context_settings)
        _usage, _, told = command.get_help(context).partition("\n\n")
        if "..." in told:
            cut.append(path)
    assert cut == []
