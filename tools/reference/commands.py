"""The page of the commands: each with its usage, its words, its arguments and options."""

from collections.abc import Iterator
from inspect import cleandoc

import click

from tools.reference.markdown import code, page, table
from tsuzuki.cli.errors import EXIT_CODE_MEANINGS
from tsuzuki.cli.options import GLOBAL_OPTIONS
from tsuzuki.cli.root import ROOT
from tsuzuki.wiring.collectors import collector_records


def commands_page() -> str:
    root = click.Context(ROOT, info_name="tsuzuki", **ROOT.context_settings)
    exits = [(code(number), meaning) for number, meaning in EXIT_CODE_MEANINGS.items()]
    return page(
        "Commands",
        "Every command of `tsuzuki`, as shown by `--help`. Data goes to stdout, everything else to stderr.",
        "## Options of every command",
        table(("option", "meaning"), [_row(option.help_row(root)) for option in GLOBAL_OPTIONS]),
        "## Exit codes",
        table(("code", "meaning"), exits),
        *_commands(root),
    )


def _commands(root: click.Context) -> Iterator[str]:
    """Ours only: other distributions document what they add."""
    records = collector_records()
    ours = [one for name, one in records.usable.items() if name not in records.distributions]
    names = [*ROOT.lazy_commands, *(name for one in ours for name in one.commands)]
    for name in names:
        command = ROOT.get_command(root, name)
        if command is not None and not command.hidden:
            yield f"## tsuzuki {name}"
            yield from _command(_child(command, name, root))
            yield from _verbs(_child(command, name, root))


def _verbs(parent: click.Context) -> Iterator[str]:
    if not isinstance(parent.command, click.Group):
        return
    for name in parent.command.list_commands(parent):
        command = parent.command.get_command(parent, name)
        if command is not None and not command.hidden:
            context = _child(command, name, parent)
            yield f"### {context.command_path}"
            yield from _command(context)
            yield from _verbs(context)


def _child(command: click.Command, name: str, parent: click.Context) -> click.Context:
    return click.Context(command, info_name=name, parent=parent)


def _command(context: click.Context) -> Iterator[str]:
    command = context.command
    pieces = " ".join(command.collect_usage_pieces(context))
    yield f"```text\n{context.command_path} {pieces}\n```"
    yield _words(command.help or "")
    records = [one.get_help_record(context) for one in command.get_params(context)]
    rows = [_row(one) for one in records if one and one[1] and not one[0].endswith("--help")]
    if rows:
        yield table(("option", "meaning"), rows)
    yield _words(command.epilog or "")


def _row(record: tuple[str, str]) -> tuple[str, str]:
    return code(record[0]), record[1]


def _words(text: str) -> str:
    """Paragraphs of a help text. What click leaves as it is (`\\b`) stays as it is here too."""
    parts = cleandoc(text).replace("<", "&lt;").split("\n\n")
    return "\n\n".join(
        "```text\n" + part.replace("&lt;", "<").removeprefix("\b\n") + "\n```"
        if part.startswith("\b")
        else part
        for part in parts
    ).strip()
