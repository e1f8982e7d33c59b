"""`tsuzuki index read` and `map`: current source of symbols and files, and the most important files."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from tsuzuki.cli.commands import Command
from tsuzuki.cli.invocation import Invocation, OutputFormat
from tsuzuki.cli.terminal.output import Column, emit, say, write
from tsuzuki.collectors.codeindex.commands.answers import code_answers, root_option, tell_state
from tsuzuki.model.visible_text import neutralise

if TYPE_CHECKING:
    from tsuzuki.collectors.codeindex.service.answers import Excerpt, RankedFile

LINES = [Column("path"), Column("line"), Column("text")]
MAP = [Column("path"), Column("line"), Column("kind"), Column("signature")]


@click.command(cls=Command)
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@click.option(
    "--lines", metavar="FROM-TO", help="With a file: show only these lines, such as 10-20."
)
@click.option(
    "--whole", is_flag=True, help="Show a long class in full instead of listing its members."
)
@root_option
@click.pass_obj
def read(
    invocation: Invocation, names: tuple[str, ...], lines: str | None, whole: bool, root: str | None
) -> None:
    """Show the current source of symbols or files, with line numbers.

    NAME is a symbol (parse_config, Server/start, Server/start[1]), a symbol in a file
    (src/app.py:Server), a file, or lines of a file (src/app.py:10-20). If a name fits several symbols, they are
    listed.

    \b
    tsuzuki index read Server/start
    tsuzuki index read src/app.py:10-20
    """
    answer = code_answers(invocation, root).read(names, lines=lines, whole=whole)
    if invocation.output.is_json:
        emit(invocation, [excerpt.as_dict() for excerpt in answer.value])
    elif invocation.output is OutputFormat.PLAIN:
        emit(invocation, _line_rows(answer.value), columns=LINES)
    else:
        for number, excerpt in enumerate(answer.value):
            write("\n" * (number > 0) + "\n".join(_numbered(excerpt)))
    tell_state(invocation, answer.index)
    if any(excerpt.is_outline for excerpt in answer.value):
        say(
            invocation, "a long class is shown as its list of members; show it in full with --whole"
        )


def _line_rows(excerpts: "list[Excerpt]") -> Iterator[dict[str, object]]:
    for excerpt in excerpts:
        for line, text in excerpt.lines:
            yield {"path": excerpt.path, "line": line, "text": text}


def _numbered(excerpt: "Excerpt") -> Iterator[str]:
    symbol = f" {excerpt.symbol.kind} {excerpt.symbol.name_path}" if excerpt.symbol else ""
    yield neutralise(f"{excerpt.path}:{excerpt.start}-{excerpt.end}{symbol}")
    width = len(str(excerpt.end))
    for line, text in excerpt.lines:
        yield f"{line:>{width}}  {neutralise(text.expandtabs(4))}".rstrip()


@click.command("map", cls=Command)
@click.option(
    "--focus",
    multiple=True,
    metavar="PATH|NAME",
    help="File or name of interest: what it uses, and what uses it, ranks higher.",
)
@click.option(
    "--limit", type=click.IntRange(1, 10_000), default=20, help="Maximum number of files."
)
@click.option(
    "--symbols",
    "symbols_max",
    type=click.IntRange(0, 1_000),
    default=5,
    help="Maximum number of definitions per file.",
)
@root_option
@click.pass_obj
def code_map(
    invocation: Invocation, focus: tuple[str, ...], limit: int, symbols_max: int, root: str | None
) -> None:
    """Show the files used most by the rest of the tree, with their most used definitions.

    \b
    tsuzuki index map --limit 10
    tsuzuki index map --focus src/app.py
    """
    answer = code_answers(invocation, root).map(focus=focus, limit=limit, symbols_max=symbols_max)
    if invocation.output.is_json:
        emit(invocation, [file.as_dict() for file in answer.value])
    elif invocation.output is OutputFormat.PLAIN:
        emit(invocation, _symbol_rows(answer.value), columns=MAP)
    else:
        for file in answer.value:
            write("\n".join(_map_lines(file)))
        if not answer.value:
            say(invocation, "no symbols")
    tell_state(invocation, answer.index)


def _symbol_rows(files: "list[RankedFile]") -> Iterator[dict[str, object]]:
    for file in files:
        for symbol in file.symbols:
            yield symbol.as_dict()


def _map_lines(file: "RankedFile") -> Iterator[str]:
    yield neutralise(f"{file.path}  ({100 * file.rank:.1f} %)")
    width = max((len(str(symbol.line)) for symbol in file.symbols), default=1)
    for symbol in file.symbols:
        inside = f"{symbol.container}/ " if symbol.container else ""
        yield neutralise(f"    {symbol.line:>{width}}  {inside}{symbol.signature or symbol.name}")
