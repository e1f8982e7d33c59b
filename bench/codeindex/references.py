"""Answers about references: how long they take, and whether every identifier of a name is among them.

The oracle is Python's own tokenizer: a NAME token that is the name is a reference or a definition.
"""

import io
import random
import re
import statistics
import time
import tokenize
from pathlib import Path
from typing import Any

from tsuzuki.collectors.codeindex.answers.definitions import definitions_of
from tsuzuki.collectors.codeindex.answers.freshness import FreshFiles
from tsuzuki.collectors.codeindex.answers.references import ReferenceQuery, find_references
from tsuzuki.collectors.codeindex.index_file import IndexFile

NAMES = 100
SEED = 11
_WORD = re.compile(r"\w+")
_NAMES_OF_PYTHON = (
    "SELECT DISTINCT symbols.name FROM symbols JOIN files ON files.id = file_id"
    " WHERE language = 'python' ORDER BY 1"
)


def reference_times(root: Path, folder: Path) -> dict[str, Any]:
    """Random names that Python files of an indexed tree define."""
    index = IndexFile.open_existing(root, folder=folder)
    assert index is not None
    mentions = _mentions(root)
    seconds, uses, exact, tokens, missing, left_out = [], 0, 0, 0, 0, 0
    with index:
        names = [name for (name,) in index.connection.execute(_NAMES_OF_PYTHON)]
        for name in random.Random(SEED).sample(names, min(NAMES, len(names))):
            files = FreshFiles(root, index.connection)
            cpu = time.process_time()
            found = find_references(files, ReferenceQuery(name=name))
            seconds.append(time.process_time() - cpu)
            uses, exact = uses + len(found.uses), exact + found.exact
            if (
                found.files_left_out
            ):  # the machine is busy: what was not looked at cannot be missing
                left_out += found.files_left_out
                continue
            known = {(one.path, one.line, one.column) for one in found.uses}
            known |= {(one.path, one.line, one.column) for one in definitions_of(files, [name])}
            written = {
                place for path in mentions.get(name, ()) for place in _tokens(root, path, name)
            }
            tokens, missing = tokens + len(written), missing + len(written - known)
    return {
        "answer_cpu_seconds": statistics.median(seconds),
        "answer_cpu_seconds_max": max(seconds),
        "uses": uses,
        "exact_share": exact / uses,
        "recall": 1 - missing / tokens,
        "files_left_out": left_out,
    }


def _mentions(root: Path) -> dict[str, list[str]]:
    """Python files that contain each word, found without the index in order to judge it."""
    found: dict[str, list[str]] = {}
    for path in sorted(root.rglob("*.py")):
        if ".git" not in path.parts:
            for word in set(_WORD.findall(path.read_text(encoding="utf-8", errors="replace"))):
                found.setdefault(word, []).append(path.relative_to(root).as_posix())
    return found


def _tokens(root: Path, path: str, name: str) -> list[tuple[str, int, int]]:
    content = (root / path).read_bytes()
    try:
        found = [*tokenize.tokenize(io.BytesIO(content).readline)]
    except (tokenize.TokenError, SyntaxError):
        return []
    return [(path, *one.start) for one in found if one.type == tokenize.NAME and one.string == name]
