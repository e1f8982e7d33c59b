"""A tree of real files with an index of its own, made anew for a test."""

import sqlite3
import time
from collections.abc import Mapping
from pathlib import Path

from tsuzuki.collectors.codeindex.answers.freshness import FreshFiles
from tsuzuki.collectors.codeindex.index_file import IndexFile
from tsuzuki.collectors.codeindex.parsing.parse import ParseLimits, parse_file
from tsuzuki.collectors.codeindex.parsing.parsed_file import FileToParse, ParsedFile
from tsuzuki.collectors.codeindex.queries import builds, files
from tsuzuki.collectors.codeindex.queries.names import NameIds


class IndexedTree:
    """Files below `root`, and the open index of what they were when `index` was called."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root = root
        root.mkdir(exist_ok=True)
        self.index_file = IndexFile.open(root, folder=folder)

    @property
    def connection(self) -> sqlite3.Connection:
        return self.index_file.connection

    def write(self, contents: Mapping[str, str]) -> None:
        for path, text in contents.items():
            where = self.root / path
            where.parent.mkdir(parents=True, exist_ok=True)
            where.write_text(text, encoding="utf-8")

    def index(self) -> None:
        names = NameIds()
        with self.index_file.transaction(builds.is_idle) as connection:
            for where in sorted(self.root.rglob("*")):
                path = where.relative_to(self.root).as_posix()
                if where.is_file() and not path.startswith(".git/"):
                    parsed = parse_file(str(self.root), FileToParse(path=path), ParseLimits())
                    assert isinstance(parsed, ParsedFile)
                    files.put_file(connection, parsed, names=names, now_ns=time.time_ns())

    def files(self) -> FreshFiles:
        return FreshFiles(self.root, self.connection)

    def close(self) -> None:
        self.index_file.close()
