"""Definitions by name, each checked against its file.

The index says in which files a name is defined. From a file that has changed since, its definitions of now are
taken, and none of the stored ones. `changed` are the files that are known to differ from the index: they are always
looked at, so a definition written a moment ago is found too.
"""

from collections.abc import Iterable, Iterator

from tsuzuki.collectors.codeindex.answers.freshness import FreshFile, FreshFiles
from tsuzuki.collectors.codeindex.queries import lookups
from tsuzuki.collectors.codeindex.queries.lookups import Symbol


def definitions_of(
    files: FreshFiles, names: Iterable[str], *, changed: Iterable[str] = ()
) -> list[Symbol]:
    """Every definition that has exactly one of these names, by path and line."""
    wanted = {*names}
    found = {
        symbol
        for file in files_that_define(files, wanted, changed=changed)
        for symbol in file.symbols
        if symbol.name in wanted
    }
    return sorted(found, key=by_place)


def files_that_define(
    files: FreshFiles, names: Iterable[str], *, changed: Iterable[str] = ()
) -> Iterator[FreshFile]:
    stored = lookups.symbols_named(files.connection, names) if files.connection else []
    yield from files.all([*(symbol.path for symbol in stored), *changed])


def by_place(symbol: Symbol) -> tuple[str, int, int]:
    return (symbol.path, symbol.line, symbol.column)
