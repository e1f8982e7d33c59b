"""References to random definitions compared with a language server, or with the identifiers in the text.

    python -m bench.codeindex.recall TREE --language go --server gopls [--server-tree PATH] [--details]
    python -m bench.codeindex.recall TREE --language rust

For each kind of definition: how many references the oracle reports, the share of them that is found (`recall`), the
share that is found and exact (`exact_recall`), and the share of exact references that a server confirms
(`exact_precision`). A server may be shown another copy of the files, in the layout that it needs. Without a server the
oracle is every word of the text that is the name and is in no comment and no string. `--details` lists the differences.
"""

import argparse
import itertools
import random
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.codeindex.ours import builds_in, built
from bench.codeindex.reference_client import Place, ReferenceClient, reference_client
from bench.codeindex.text_words import LEXERS, places_of_words
from bench.rows import run, temporary_folder
from tsuzuki.collectors.codeindex.answers.definitions import definitions_of
from tsuzuki.collectors.codeindex.answers.freshness import FreshFiles
from tsuzuki.collectors.codeindex.answers.references import (
    ReferenceLine,
    ReferenceQuery,
    find_references,
)
from tsuzuki.collectors.codeindex.index_file import IndexFile
from tsuzuki.collectors.codeindex.lsp.settings import ServerCommand
from tsuzuki.collectors.codeindex.queries.lookups import Symbol
from tsuzuki.model.clock import ManualClock

SEED = 15
SYMBOLS = 30
"""Number of referenced definitions compared per kind."""

MENTIONS = (1, 150)
"""In how many files their names are."""

KINDS = {
    "functions": "kind = 'function' AND container = ''",
    "classes": "kind IN ('class', 'struct')",
    "interfaces and types": "kind IN ('interface', 'trait', 'type') AND container = ''",
    "enums": "kind = 'enum'",
    "constants": "kind = 'constant' AND container = ''",
    "variables": "kind IN ('variable', 'object') AND container = ''",
    "fields": "kind IN ('field', 'property')",
    "enum members": "kind = 'member'",
    "methods": "kind = 'method'",
}
"""Conditions on `symbols`."""


@dataclass(frozen=True, kw_only=True)
class Defined:
    """A definition: its name and where that stands."""

    name: str
    place: Place


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One definition: the references of the oracle, ours, and those of ours that are exact."""

    defined: Defined
    reported: frozenset[Place]
    found: frozenset[Place]
    exact: frozenset[Place]
    wrong: frozenset[Place]
    """Exact, and not reported."""


Oracle = Callable[[Defined], set[Place]]
"""Every place that refers to a definition; the definition itself may be among them."""


def of_server(client: ReferenceClient) -> Oracle:
    return lambda defined: client.references(defined.place)


def of_text(root: Path, language: str, names: Iterable[str]) -> Oracle:
    places = places_of_words(root, language, frozenset(names))
    return lambda defined: places.get(defined.name, set())


def definitions_in(
    index: IndexFile, language: str, condition: str, mentions: tuple[int, int]
) -> list[Defined]:
    """The definitions of a kind in random order, the same with every run."""
    in_files = "SELECT count(*) FROM mentions WHERE name_id = names.id"
    rows = index.connection.execute(
        "SELECT path, symbols.name, line, col FROM symbols JOIN files ON files.id = file_id"
        f" JOIN names ON names.name = symbols.name WHERE language = ? AND ({condition})"
        f" AND ({in_files}) BETWEEN ? AND ? ORDER BY path, line, col",
        (language, *mentions),
    ).fetchall()
    random.Random(SEED).shuffle(rows)
    return [Defined(name=name, place=(path, line, col)) for path, name, line, col in rows]


def compared(
    files: FreshFiles, all_defined: Sequence[Defined], oracle: Oracle, line: Callable[..., str]
) -> Iterator[Compared]:
    """The definitions that the oracle has a reference to. `line` gives a line of a file."""
    for defined in all_defined:
        said = oracle(defined)
        # To a server, another definition of the name may refer to this one.
        others = definitions_of(files, [defined.name])
        reported = {one for one in said if _is_identifier(one, defined.name, line)}
        reported -= {_name_place(one, reported, line) for one in others}
        if not reported:
            continue
        itself = frozenset(one for one in others if _place(one) == defined.place)
        ours = {_place(one) for one in _uses(files, defined.name)}
        exact = {
            _place(one) for one in _uses(files, defined.name, itself) if one.confidence.is_exact
        }
        yield Compared(
            defined=defined,
            reported=frozenset(reported),
            found=frozenset(reported & ours),
            exact=frozenset(reported & exact),
            wrong=frozenset(exact - said),
        )


def _uses(
    files: FreshFiles, name: str, targets: frozenset[Symbol] = frozenset()
) -> list[ReferenceLine]:
    # With a clock that stands still: a busy machine leaves no file out.
    query = ReferenceQuery(name=name, targets=targets)
    return find_references(files, query, clock=ManualClock(datetime.now(UTC))).uses


def _place(one: Symbol | ReferenceLine) -> Place:
    return one.path, one.line, one.column


def _name_place(symbol: Symbol, places: Iterable[Place], line: Callable[..., str]) -> Place:
    """Position of a definition's name; the index has its start, which may be an annotation on an earlier line."""
    start = _place(symbol)
    if line(symbol.path, symbol.line).startswith(symbol.name, symbol.column):
        return start
    end = (symbol.path, symbol.end_line + 1, 0)
    return min((one for one in places if start < one < end), default=start)


def _is_identifier(place: Place, name: str, line: Callable[..., str]) -> bool:
    """Not a string of `__all__` or in brackets, nor another name that an import gave."""
    path, number, column = place
    text = line(path, number)
    return text.startswith(name, column) and text[column - 1 : column] not in ("'", '"')


def figures(all_compared: Sequence[Compared]) -> dict[str, Any]:
    references, found, exact, wrong = (
        sum(len(getattr(one, what)) for one in all_compared)
        for what in ("reported", "found", "exact", "wrong")
    )
    return {
        "symbols": len(all_compared),
        "references": references,
        "recall": found / references,
        "exact_recall": exact / references,
        "exact_precision": exact / (exact + wrong) if exact + wrong else 1.0,
    }


def show_differences(all_compared: Iterable[Compared]) -> None:
    for one in all_compared:
        kinds = {
            "missing": one.reported - one.found,
            "by name": one.found - one.exact,
            "wrong": one.wrong,
        }
        for kind, places in kinds.items():
            for path, line, column in sorted(places):
                where = "{}:{}".format(*one.defined.place[:2])
                place = f"{path}:{line}:{column}"
                print(f"  {kind:<8} {one.defined.name} ({where}) {place}", file=sys.stderr)


def measures(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    root = options.tree.resolve()
    with temporary_folder("tsuzuki-recall-") as folder:
        built(builds_in(folder), root)
        index = IndexFile.open_existing(root, folder=Path(folder))
        assert index is not None
        with index:
            if options.server is None:
                yield from beside_text(index, root, options)
                return
            command = ServerCommand(
                language=options.language, words=tuple(shlex.split(options.server))
            )
            with reference_client(command, root=options.server_tree or root) as client:
                yield from of_kinds(index, root, options, lambda _: of_server(client), client.line)


def beside_text(
    index: IndexFile, root: Path, options: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    def oracle(all_defined: Sequence[Defined]) -> Oracle:
        return of_text(root, options.language, (one.name for one in all_defined))

    def line(path: str, number: int) -> str:
        return (root / path).read_text("utf-8", "replace").split("\n")[number - 1]

    for row in of_kinds(index, root, options, oracle, line):
        # A word of the text says nothing about what it means.
        yield {key: row[key] for key in ("measure", "program", "symbols", "references", "recall")}


def of_kinds(
    index: IndexFile,
    root: Path,
    options: argparse.Namespace,
    oracle: Callable[[Sequence[Defined]], Oracle],
    line: Callable[..., str],
) -> Iterator[dict[str, Any]]:
    files = FreshFiles(root, index.connection)
    for kind, condition in KINDS.items():
        if options.only and kind not in options.only:
            continue
        all_defined = definitions_in(index, options.language, condition, MENTIONS)
        found = compared(files, all_defined, oracle(all_defined), line)
        taken = [*itertools.islice(found, options.symbols)]
        if options.details:
            show_differences(taken)
        if taken:
            measure = f"references to {kind} in {options.language}"
            yield {"measure": measure, "program": "ours", **figures(taken)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tree", type=Path)
    parser.add_argument("--language", required=True)
    parser.add_argument("--server", help=f"not needed for {', '.join(LEXERS)}")
    parser.add_argument("--server-tree", type=Path)
    parser.add_argument("--symbols", type=int, default=SYMBOLS)
    parser.add_argument("--details", action="store_true")
    run(parser, measures, name="codeindex-recall", choices=[*KINDS])


if __name__ == "__main__":
    main()
