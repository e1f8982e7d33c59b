"""universal-ctags into SQLite: two processes of ctags, and this one that stores what they print.

    python -m bench.codeindex.ctags_build <root> <database>

With two indexes and the trigrams of all names, as ours has. It stores no references: ctags has none to give.
"""

import json
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from queue import SimpleQueue
from typing import Any

from bench.feeds.figures import processor_seconds, say

PROCESSES = 2
LINES = 2_000
CTAGS = "ctags --output-format=json --fields=+neKS --sort=no -f - -L -".split()
TABLES = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
CREATE TABLE tags (id INTEGER PRIMARY KEY, path, name, kind, scope, line, end_line, signature);
CREATE VIRTUAL TABLE names USING fts5 (name, content = 'tags', content_rowid = 'id', tokenize = 'trigram');
"""
INSERT = "INSERT INTO tags (path, name, kind, scope, line, end_line, signature) VALUES (?, ?, ?, ?, ?, ?, ?)"
LAST = (
    "CREATE INDEX tags_by_name ON tags (name)",
    "CREATE INDEX tags_by_path ON tags (path)",
    "INSERT INTO names (names) VALUES ('rebuild')",
    "COMMIT",
)


def main(root: str, database: str) -> None:
    started = time.perf_counter()
    listed = subprocess.run(
        ["git", "-C", root, "ls-files", "-coz", "--exclude-standard"],
        check=True,
        capture_output=True,
    )
    paths = listed.stdout.split(b"\0")[:-1]
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.executescript(TABLES)
        connection.execute("BEGIN")
        connection.executemany(INSERT, _rows(root, paths))
        for statement in LAST:
            connection.execute(statement)
        (count,) = connection.execute("SELECT count(*) FROM tags").fetchone()
    seconds = time.perf_counter() - started
    say(seconds=seconds, cpu_seconds=processor_seconds(), files=len(paths), symbols=count)


def _rows(root: str, paths: list[bytes]) -> Iterator[tuple[Any, ...]]:
    lines: SimpleQueue[list[bytes] | None] = SimpleQueue()
    for number in range(PROCESSES):
        words = (root, paths[number::PROCESSES], lines)
        threading.Thread(target=_ctags, args=words).start()
    running = PROCESSES
    while running:
        some = lines.get()
        if some is None:
            running -= 1
            continue
        for line in some:
            tag = json.loads(line)
            if tag["_type"] == "tag":
                scope, end, signature = tag.get("scope"), tag.get("end"), tag.get("signature")
                yield (tag["path"], tag["name"], tag["kind"], scope, tag["line"], end, signature)


def _ctags(root: str, paths: list[bytes], lines: "SimpleQueue[list[bytes] | None]") -> None:
    with subprocess.Popen(
        CTAGS,
        cwd=root,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        feeding = threading.Thread(target=_feed, args=(process.stdin, paths))
        feeding.start()
        while some := process.stdout.readlines(LINES * 100):
            lines.put(some)
        feeding.join()
    lines.put(None)


def _feed(stream: Any, paths: list[bytes]) -> None:
    with stream:
        stream.write(b"\n".join(paths) + b"\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
