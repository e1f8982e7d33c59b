"""`tsuzuki index search`, `references` and `outline`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tsuzuki.cli.commands import Command
from tsuzuki.cli.invocation import Invocation, OutputFormat
from tsuzuki.cli.terminal.output import Column, emit, say, warn
from tsuzuki.collectors.codeindex.commands.service import extra_required

if TYPE_CHECKING:
    from tsuzuki.collectors.codeindex.service.answers import CodeAnswers, IndexState

FOUND = [
    Column("place"),
    Column("kind"),
    Column("name_path", "NAME", shrinks=True),
    Column("text", format=str.strip, shrinks=True),
]
REFERENCES = [
    Column("place"),
    Column("kind"),
    Column("confidence"),
    Column("definitions", align="right"),
    Column("container", "IN", shrinks=True),
    Column("text", shrinks=True),
]
OUTLINE = [
    Column("place"),
    Column("kind"),
    Column("indented", "NAME"),
    Column("signature"),
]

root_option = click.option(
    "--root",
    metavar="FOLDER",
    help="Tree to search (default: the repository around the current folder).",
)
path_option = click.option(
    "--path",
    "paths",
    metavar="PATTERN",
    multiple=True,
    help="Include only files matching this .gitignore pattern: '*.py', 'src/', '!tests'.",
)


def code_answers(invocation: Invocation, root: str | None) -> "CodeAnswers":
    """The tree that is asked about. No workspace and no database is needed."""
    with extra_required():
        from tsuzuki.collectors.codeindex.service.answers import CodeAnswers
    return CodeAnswers.of(root, cwd=invocation.cwd, environ=invocation.environ)


def tell_state(invocation: Invocation, index: "IndexState") -> None:
    """What a reader should know of the index that an answer was made from."""
    if index.state == "building":
        warn(
            invocation,
            f"the index is being built ({index.percent} %); the answer may be incomplete",
        )
    if index.state == "changing":
        warn(
            invocation,
            "the tree is being rewritten, so files of two states may be mixed; ask again",
        )
    for folder in index.unlisted_folders:
        warn(
            invocation,
            f"git does not list the files of {Path(index.root, folder)}, so ignored files may "
            f"be included; to see why, run: git -C {Path(index.root, folder)} status",
        )
    if index.pending:
        warn(
            invocation,
            f"{index.pending} files changed since the index was built and may be missing; "
            f"update it with: tsuzuki index build {index.root}",
        )


@click.command(cls=Command)
@click.argument("text")
@click.option(
    "--in",
    "where",
    type=click.Choice(["names", "text", "both"]),
    default="both",
    help="Search in names of definitions, in text, or in both (default).",
)
@click.option("--regex", "-e", is_flag=True, help="Treat the text as a regular expression.")
@click.option(
    "--ignore-case", "-i", is_flag=True, help="Match case in text; names always ignore case."
)
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    metavar="KIND",
    help="Show only definitions of this kind: class, function, …",
)
@click.option(
    "--language", "languages", multiple=True, metavar="LANGUAGE", help="Show only this language."
)
@path_option
@click.option(
    "--limit",
    type=click.IntRange(1, 10_000),
    default=20,
    help="Maximum number of names, and of lines.",
)
@root_option
@click.pass_obj
def search(invocation: Invocation, /, text: str, where: str, root: str | None, **said: Any) -> None:
    """Search definitions by name, and lines by text.

    A name matches in full, by its beginning, by any part, or by the beginnings of its words: both `buMan`
    and `BJM` find `BuildJobManager`. `Class/part` searches within a class.

    \b
    tsuzuki index search parse_config
    tsuzuki index search 'Manager/st' --kind method
    tsuzuki index search --regex 'TODO.*20\\d\\d' --path '*.py'
    """
    answers = code_answers(invocation, root)
    answer = answers.search(text, names=where != "text", lines=where != "names", **said)
    found = answer.value
    rows = [*found.rows()]
    emit(invocation, rows, columns=FOUND, empty="nothing found")
    tell_state(invocation, answer.index)
    if answer.index.state == "missing" and where != "text":
        warn(
            invocation,
            "only text was searched because there is no index yet; build it with: tsuzuki "
            f"index build {answer.index.root}",
        )
    if found.more_names:
        say(invocation, f"{found.more_names} more names match; show more with --limit")
    if found.has_more_lines:
        say(invocation, "more lines match; show more with --limit")
    if not rows and found.did_you_mean:
        say(invocation, f'Did you mean "{found.did_you_mean}"?')


@click.command(cls=Command)
@click.argument("name")
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    metavar="KIND",
    help="Show only references of this role: call, type, import, inherit, read.",
)
@path_option
@click.option("--tests/--no-tests", default=True, help="Include or exclude references in tests.")
@click.option(
    "--exact", is_flag=True, help="Show only references that certainly mean this definition."
)
@click.option(
    "--limit", type=click.IntRange(1, 100_000), default=200, help="Maximum number of results."
)
@root_option
@click.pass_obj
def references(
    invocation: Invocation, /, name: str, root: str | None, exact: bool, limit: int, **said: Any
) -> None:
    """Show where a symbol is used, and how certain each reference is.

    A reference is exact if its definition is in the same file or package, is imported, or is the only one in
    the tree. Otherwise only the name matches, and the table shows how many definitions share it.

    \b
    tsuzuki index references parse_config
    tsuzuki index references src/app.py:Server/start --exact
    """
    answer = code_answers(invocation, root).references(name, **said)
    answered = answer.value
    found = [one for one in answered.uses if one.confidence.is_exact or not exact]
    rows = [one.as_dict() for one in found[:limit]]
    emit(invocation, rows, columns=_reference_columns(invocation, rows), empty="no references")
    tell_state(invocation, answer.index)
    if answered.files_left_out:
        warn(
            invocation,
            f"{answered.files_left_out} more files mention {name} and were not searched; "
            "narrow the search with --path",
        )
    say(invocation, f"{len(answered.uses)} references, {answered.exact} of them exact")
    if len(found) > limit:
        say(invocation, f"{len(found) - limit} are not shown; show more with --limit")


def _reference_columns(invocation: Invocation, rows: list[dict[str, Any]]) -> list[Column]:
    """A table has no count of definitions where each use means one."""
    if invocation.output is not OutputFormat.TABLE or any(row["definitions"] != 1 for row in rows):
        return REFERENCES
    return [column for column in REFERENCES if column.key != "definitions"]


@click.command(cls=Command)
@click.argument("path", required=False, default="")
@click.option(
    "--depth", type=click.IntRange(1, 99), help="Levels of nested definitions; 1 for a folder."
)
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    metavar="KIND",
    help="Show only definitions of this kind: class, function, …",
)
@root_option
@click.pass_obj
def outline(
    invocation: Invocation,
    path: str,
    depth: int | None,
    kinds: tuple[str, ...],
    root: str | None,
) -> None:
    """List the definitions in a file, or the top-level definitions in a folder's files.

    \b
    tsuzuki index outline src/app.py
    tsuzuki index outline src --kind class
    """
    answer = code_answers(invocation, root).outline(path, depth=depth, kinds=kinds)
    rows = [
        {**entry.as_dict(), "indented": "  " * entry.depth + entry.symbol.name}
        for entry in answer.value
    ]
    emit(invocation, rows, columns=OUTLINE, empty="no symbols")
    tell_state(invocation, answer.index)
