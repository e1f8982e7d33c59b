"""The frame every command stands in: global options, help, guesses, loading on demand."""

import json
import sys
from collections.abc import Iterator
from enum import Enum
from pathlib import Path

import click
import pytest

from tsuzuki.cli import run_cli
from tsuzuki.cli.commands import Command, Group, LazyCommand, LazyGroup
from tsuzuki.cli.invocation import Invocation, OutputFormat
from tsuzuki.cli.options import GLOBAL_OPTIONS, EnumChoice, read_global_options
from tsuzuki.cli.root import COMMANDS, ROOT, collector_commands

seen: list[Invocation] = []


class Colour(Enum):
    RED = "red"
    DARK_BLUE = "dark-blue"


@click.group(cls=Group)
def sample() -> None:
    """A root as ours, with a noun in it."""


@sample.group()
def thing() -> None:
    """A noun."""


@thing.command()
@click.pass_obj
def show(invocation: Invocation) -> None:
    """Remember how it was called."""
    seen.append(invocation)


@thing.command()
@click.option("--colour", type=EnumChoice(Colour))
def paint(colour: Colour | None) -> None:
    click.echo(repr(colour))


@pytest.fixture(autouse=True)
def nothing_seen() -> None:
    seen.clear()


@pytest.mark.parametrize(
    "words",
    ["-o json thing show", "thing -o json show", "thing show -o json", "thing show --output=JSON"],
)
def test_a_global_option_may_stand_anywhere(words: str) -> None:
    assert run_cli(words.split(), root=sample) == 0
    assert seen[0].output is OutputFormat.JSON


def test_the_global_option_nearest_to_the_end_counts() -> None:
    assert run_cli("-o json -c a.yaml thing show -o plain -c b.yaml".split(), root=sample) == 0
    assert seen[0].output is OutputFormat.PLAIN
    assert seen[0].config_file == Path("b.yaml")


def test_an_option_not_said_again_keeps_what_the_outer_command_said() -> None:
    words = "--database-url sqlite:///x.db -v --no-color thing show -q".split()
    assert run_cli(words, environ={}, cwd=Path("/w"), root=sample) == 0
    assert seen[0] == Invocation(
        database_url="sqlite:///x.db",
        verbose=True,
        no_color=True,
        quiet=True,
        environ={},
        cwd=Path("/w"),
    )


def test_an_invocation_does_not_show_its_secrets() -> None:
    shown = repr(Invocation(database_url="postgresql://u:hunter2@h/d", environ={"K": "hunter3"}))
    assert "hunter" not in shown


@pytest.mark.parametrize(
    ("environ", "no_color", "allowed"),
    [
        ({}, False, True),
        ({"NO_COLOR": ""}, False, True),
        ({"NO_COLOR": "1"}, False, False),
        ({"TERM": "dumb"}, False, False),
        ({}, True, False),
    ],
)
def test_colour_is_allowed_unless_it_is_switched_off(
    environ: dict[str, str], no_color: bool, allowed: bool
) -> None:
    assert Invocation(environ=environ, no_color=no_color).color is allowed


@pytest.mark.parametrize("words", ["--bogus -o json", "nope nope --output json", "-vo json --bad="])
def test_the_global_options_are_read_from_a_wrong_command_line(words: str) -> None:
    assert read_global_options(words.split(), Invocation()).output is OutputFormat.JSON


@pytest.mark.parametrize("words", ["-o nonsense", "thing -o", "-- -o json", ""])
def test_reading_the_global_options_never_fails(words: str) -> None:
    assert read_global_options(words.split(), Invocation()).output is OutputFormat.TABLE


def test_an_unknown_command_is_answered_with_a_guess(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cli(["thing", "shwo"], root=sample) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert "error[usage]: unknown command 'tsuzuki thing shwo'" in told.err
    assert 'Did you mean "show"?' in told.err


def test_an_unknown_command_like_no_other_is_answered_with_the_way_to_help(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_cli(["zzzz"], root=sample) == 2
    assert "List the commands with: tsuzuki --help" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("logs 1", "Available: tsuzuki run logs"),
        ("job logs hello", "Available: tsuzuki run logs"),
        ("ls", "Available: tsuzuki job ls, tsuzuki run ls, tsuzuki worker ls"),
        ("run 7", 'Did you mean "tsuzuki run show 7"?'),
        ("status", 'Did you mean "doctor"?'),
        ("jb ls", 'Did you mean "job"?'),
        ("job add --name x -- true", "See: tsuzuki job add --help"),
    ],
)
def test_what_is_tried_first_is_answered_with_what_there_is(
    words: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_cli(words.split()) == 2
    assert f"hint: {hint}\n" in capsys.readouterr().err


def test_an_unknown_option_is_answered_with_a_guess(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cli(["thing", "show", "--outptu", "json"], root=sample) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert "unknown option '--outptu'" in told.err
    assert 'Did you mean "--output"?' in told.err


def test_an_enum_is_chosen_by_its_value_in_any_case(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cli(["thing", "paint", "--colour", "Dark-Blue"], root=sample) == 0
    assert "DARK_BLUE" in capsys.readouterr().out
    assert run_cli(["thing", "paint", "--colour", "dark_blue"], root=sample) == 2
    assert "'red', 'dark-blue'" in capsys.readouterr().err


def test_a_group_without_a_verb_shows_its_help_and_fails(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_cli(["thing"], root=sample) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert "Remember how it was called." in told.err


def test_a_missing_verb_is_a_json_error_for_a_caller_who_reads_json(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_cli(["-o", "json", "thing"], root=sample) == 2
    assert json.loads(capsys.readouterr().err)["error"]["code"] == "usage"


@pytest.mark.parametrize("flag", ["-h", "--help"])
@pytest.mark.parametrize("command", [[], ["completion"]])
def test_help_is_data_and_lists_the_global_options_last(
    command: list[str], flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_cli([*command, flag]) == 0
    told = capsys.readouterr()
    assert told.err == ""
    _, _, last_section = told.out.partition("Global options:")
    assert all(option.opts[0] in last_section for option in GLOBAL_OPTIONS)


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    from importlib.metadata import version  # noqa: PLC0415

    assert run_cli(["--version"]) == 0
    assert capsys.readouterr().out == f"tsuzuki {version('tsuzuki')}\n"


def test_the_root_does_not_load_its_commands_to_list_or_complete_them() -> None:
    absent = LazyCommand("no_such_module:command", "Do a thing.")
    root = LazyGroup(name="root", lazy_commands={"absent": absent})
    context = click.Context(root)
    assert "Do a thing." in root.get_help(context)
    assert [item.value for item in root.shell_complete(context, "ab")] == ["absent"]
    assert "no_such_module" not in sys.modules


def test_a_lazy_target_that_is_no_command_is_refused() -> None:
    with pytest.raises(TypeError, match="is not a command"):
        LazyCommand("tsuzuki.cli.root:COMMANDS", "A table.").load()


@pytest.mark.parametrize(
    ("name", "lazy_command"), [*COMMANDS.items(), *collector_commands().items()]
)
def test_the_line_in_the_table_is_the_first_line_of_the_commands_own_help(
    name: str, lazy_command: LazyCommand
) -> None:
    command = lazy_command.load()
    assert command.name == name
    assert (command.help or "").partition("\n")[0].strip() == lazy_command.summary


def every_command() -> Iterator[tuple[click.Context, click.Command]]:
    waiting: list[tuple[click.Context, click.Command]] = [
        (click.Context(ROOT, **ROOT.context_settings), ROOT)
    ]
    while waiting:
        context, command = waiting.pop()
        yield context, command
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                child = command.get_command(context, name)
                assert child is not None
                waiting.append((click.Context(child, parent=context, info_name=name), child))


def test_every_command_takes_the_global_options_and_none_takes_their_names() -> None:
    for context, command in every_command():
        where = context.command_path
        assert isinstance(command, Command | Group), where
        words = [
            word for param in command.get_params(context) for word in [param.name, *param.opts]
        ]
        for option in GLOBAL_OPTIONS:
            for word in {str(option.name), *option.opts}:
                assert words.count(word) == 1, f"{where}: {word}"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_that_asks_us_back(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_cli(["completion", shell]) == 0
    assert f"_TSUZUKI_COMPLETE={shell}_complete" in capsys.readouterr().out


def test_the_completion_script_gets_its_answers(
    monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.setenv("COMP_WORDS", "tsuzuki compl")
    monkeypatch.setenv("COMP_CWORD", "1")
    assert run_cli([], environ={"_TSUZUKI_COMPLETE": "bash_complete"}) == 0
    assert capsysbinary.readouterr().out == b"plain,completion\n"
