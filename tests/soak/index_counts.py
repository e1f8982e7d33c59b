"""Whether the code index has what the files of the tree have, each symbol once."""

import re
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import TypeAlias

from tsuzuki.collectors.codeindex.index_file import FOLDER_VARIABLE, index_path
from tsuzuki.collectors.codeindex.service.builds import Builds

SYMBOLS = (
    "SELECT f.path, s.name, s.kind, s.line, s.end_line"
    " FROM symbols s JOIN files f ON f.id = s.file_id"
)
BUILD_SECONDS = 60.0

Symbol: TypeAlias = tuple[str, str, str, int, int]


def wrong_in_index(tree: Path, indexes: Path, fresh: Path) -> list[str]:
    """How the index differs from one that is built of the same tree now, and from what a search for text finds."""
    builds = Builds(environ={FOLDER_VARIABLE: str(fresh)})
    assert builds.jobs.wait(builds.start(tree).id, BUILD_SECONDS) is not None
    stored, built = (_symbols(index_path(tree, one)) for one in (indexes, fresh))
    found = _differences("index", stored, built)
    functions = Counter(
        (path, name, line)
        for path, name, kind, line, _end in stored.elements()
        if kind == "function"
    )
    return found + _differences("functions of the index", functions, _functions(tree))


def _differences(what: str, stored: "Counter[object]", expected: "Counter[object]") -> list[str]:
    if not expected:
        return [f"{what}: the tree has none, so nothing is proved"]
    lacking, extra = expected - stored, stored - expected
    if not lacking and not extra:
        return []
    told = [*lacking][:3], [*extra][:3]
    return [f"{what}: {lacking.total()} missing, {extra.total()} too many: {told}"]


def _symbols(path: Path) -> "Counter[Symbol]":
    with closing(sqlite3.connect(path)) as connection:
        return Counter(connection.execute(SYMBOLS))


def _functions(tree: Path) -> "Counter[tuple[str, str, int]]":
    return Counter(
        (file.name, found[1], number)
        for file in tree.glob("*.py")
        for number, line in enumerate(file.read_text("utf-8").splitlines(), 1)
        if (found := re.match(r"def (\w+)", line))
    )
