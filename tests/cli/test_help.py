"""Help: every command says what it does, and its examples are commands that can be read."""

import shlex
from collections.abc import Iterator

import click
import pytest

from tsuzuki.cli.commands import Group
from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.options import GlobalOption
from tsuzuki.cli.root import ROOT


def every_command(
    command: click.Command = ROOT, path: str = "tsuzuki"
) -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
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


@pytest.mark.parametrize("path", COMMANDS)
def test_a_command_says_in_one_line_what_it_does(path: str) -> None:
    summary = (COMMANDS[path].help or "").partition("\n")[0]
    assert summary.endswith(".")
    assert len(summary) <= 90


@pytest.mark.parametrize("path", [path for path in COMMANDS if path != "tsuzuki"])
def test_a_command_that_takes_something_shows_an_example(path: str) -> None:
    command = COMMANDS[path]
    if own_parameters(command) or isinstance(command, click.Group):
        assert f"{path} " in (command.help or "")


@pytest.mark.parametrize("path", COMMANDS)
def test_every_option_is_explained(path: str) -> None:
    for parameter in own_parameters(COMMANDS[path]):
        assert not isinstance(parameter, click.Option) or parameter.help, parameter.opts


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_can_be_read(example: str) -> None:
    _, *words = shlex.split(example)
    context = ROOT.make_context("tsuzuki", words, obj=Invocation())
    while isinstance(context.command, Group) and (rest := words_left(context)):
        name, command, words = context.command.resolve_command(context, rest)
        assert command is not None, name
        context = command.make_context(name, words, parent=context)
    assert words_left(context) == []


def test_there_are_examples() -> None:
    assert len(EXAMPLES) > 15


@pytest.mark.parametrize("path", COMMANDS)
def test_no_sentence_of_a_help_is_cut(path: str) -> None:
    context = click.Context(COMMANDS[path], terminal_width=80, **ROOT.context_settings)
    _usage, _, told = COMMANDS[path].get_help(context).partition("\n\n")
    assert "..." not in told
