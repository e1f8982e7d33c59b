"""Print data and messages of a command.

Data goes to stdout in the requested format, messages go to stderr. On a terminal, tables may be colored and folded
to fit; elsewhere they are never colored, cut or wrapped. JSON contains every field of a row; tables and plain lines
contain the columns.
"""

import codecs
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Literal, TextIO

import click

from tsuzuki.cli.invocation import Invocation, OutputFormat
from tsuzuki.cli.terminal.values import escape_field, json_text, plain_text, table_text
from tsuzuki.model.errors import FileUnusable
from tsuzuki.model.visible_text import neutralise


@dataclass(frozen=True)
class Column:
    """One column of a table: the field or attribute `key` of each row.

    `format` turns the value into words and `style` into a rich style; both serve tables only, for
    a machine reads the value itself. In a table with a column that `shrinks`, each row stays on one line of a
    terminal: such columns are cut where it is too narrow.
    """

    key: str
    title: str = ""
    format: Callable[[Any], str] = table_text
    align: Literal["left", "right"] = "left"
    style: Callable[[Any], str] | None = None
    shrinks: bool = False

    @property
    def heading(self) -> str:
        return self.title or self.key.replace("_", " ").upper()

    def value_of(self, row: object) -> Any:
        return row[self.key] if isinstance(row, Mapping) else getattr(row, self.key)

    def cell(self, row: object) -> str:
        """What a table shows: one line, harmless on a terminal."""
        return neutralise(self.format(self.value_of(row)))

    def cell_style(self, row: object) -> str:
        return self.style(self.value_of(row)) if self.style else ""


def emit(
    invocation: Invocation,
    data: object,
    *,
    columns: Sequence[Column] = (),
    empty: str = "nothing to show",
) -> None:
    """Print one object or any iterable of rows; an object is a mapping or a dataclass.

    Rows are printed as they come for `jsonl` and `plain`, all at once otherwise. Without `columns`
    every field is one. `empty` is said when there are no rows for a table.
    """
    if _is_object(data):
        _emit_object(invocation, data, columns or _every_field(data))
    elif isinstance(data, Iterable) and not isinstance(data, str | bytes):
        _emit_rows(invocation, data, columns, empty)
    else:
        raise TypeError(f"neither an object nor rows: {type(data).__name__}")


def write(text: str, *, ends_line: bool = True, stream: TextIO | None = None) -> None:
    """Print to stdout, or to `stream`, at once.

    A reader who left is no error and goes up as `BrokenPipeError`.
    """
    try:
        click.echo(text, file=stream, nl=ends_line)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise FileUnusable(
            f"cannot write the output: {error.strerror}",
            code="output_unwritable",
            hint="Free some disk space, or write the output elsewhere.",
        ) from error


def say(invocation: Invocation, text: str) -> None:
    """Tell the person what is going on. A caller who reads JSON is not talked to."""
    if not (invocation.quiet or invocation.output.is_json):
        echo_error(invocation, neutralise(text))


def warn(invocation: Invocation, text: str) -> None:
    """Tell of something that is not as it should be, though the command goes on."""
    if invocation.quiet:
        return
    if invocation.output.is_json:
        echo_json_error({"warning": {"message": text}})
    else:
        echo_error(invocation, f"{click.style('warning:', fg='yellow')} {neutralise(text)}")


def echo_error(invocation: Invocation, text: str) -> None:
    """Write lines to stderr; colours survive only where a terminal may be coloured."""
    click.echo(text, err=True, color=None if invocation.color else False)


def echo_json_error(value: object) -> None:
    """Write one JSON object on one line of stderr."""
    click.echo(json_text(value, ascii_only=not _takes_unicode(sys.stderr)), err=True)


def _emit_object(invocation: Invocation, data: object, columns: Sequence[Column]) -> None:
    match invocation.output:
        case OutputFormat.JSON:
            _write_json(data, indent=2)
        case OutputFormat.JSONL:
            _write_json(data)
        case OutputFormat.PLAIN:
            _write_plain(data, columns)
        case OutputFormat.TABLE:
            from tsuzuki.cli.terminal import tables  # noqa: PLC0415 - rich is slow to load

            write(tables.of_object(data, columns, invocation))


def _emit_rows(
    invocation: Invocation, rows: Iterable[object], columns: Sequence[Column], empty: str
) -> None:
    match invocation.output:
        case OutputFormat.JSON:
            _write_json(list(rows), indent=2)
        case OutputFormat.JSONL:
            for row in rows:
                _write_json(row)
        case OutputFormat.PLAIN:
            for row in rows:
                _write_plain(row, columns or _every_field(row))
        case OutputFormat.TABLE:
            _write_table(invocation, list(rows), columns, empty)


def _write_table(
    invocation: Invocation, rows: list[object], columns: Sequence[Column], empty: str
) -> None:
    if not rows:
        say(invocation, empty)
        return
    from tsuzuki.cli.terminal import tables  # noqa: PLC0415 - rich is slow to load

    write(tables.of_rows(rows, columns or _every_field(rows[0]), invocation))


def _write_json(data: object, *, indent: int | None = None) -> None:
    write(json_text(data, indent=indent, ascii_only=not _takes_unicode(sys.stdout)))


def _write_plain(row: object, columns: Sequence[Column]) -> None:
    write("\t".join(escape_field(plain_text(column.value_of(row))) for column in columns))


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person is looking. A closed stream is no terminal."""
    return stream is not None and stream.isatty()


def _takes_unicode(stream: TextIO | None) -> bool:
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return codecs.lookup(encoding).name == "utf-8"


def _is_object(data: object) -> bool:
    return isinstance(data, Mapping) or (is_dataclass(data) and not isinstance(data, type))


def _every_field(row: object) -> list[Column]:
    if isinstance(row, Mapping):
        return [Column(key) for key in row]
    if is_dataclass(row):
        return [Column(field.name) for field in fields(row)]
    raise TypeError(f"a row is a mapping or a dataclass, not {type(row).__name__}")
