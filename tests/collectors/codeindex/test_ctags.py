"""Python's classes, functions and methods are those that universal-ctags finds, on large real packages.

Where the two differ, ctags is at fault, in three ways that this module lists.
"""

import importlib.util
import json
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tsuzuki.collectors.codeindex.extract import SymbolKind, extract

PACKAGES = ["sqlalchemy", "babel", "markdown_it"]
KINDS = {
    SymbolKind.CLASS: "class",
    SymbolKind.FUNCTION: "function",
    SymbolKind.METHOD: "member",
}
JUSTIFIED = {
    "ctags gives one lambda of a name in a scope, and none after an annotation or a chain": re.compile(
        r"=\s*lambda\b"
    ),
    "ctags takes a Python name for a keyword of Cython": re.compile(r"\b(?:cdef|cpdef|inline)\b"),
    "ctags gives a lambda without a name one of its own": re.compile(r"\blambda\b"),
}
DEFINITIONS_MIN = 10_000

Tag = tuple[str, int, str, str]
"""Path, line, kind, name."""

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(shutil.which("ctags") is None, reason="needs universal-ctags"),
]


def sources() -> list[Path]:
    folders = [
        Path(spec.origin).parent
        for spec in map(importlib.util.find_spec, PACKAGES)
        if spec is not None and spec.origin is not None
    ]
    return [path for folder in folders for path in sorted(folder.rglob("*.py"))]


def tags_of_ctags(paths: list[Path]) -> Counter[Tag]:
    options = ["--output-format=json", "--fields=+nK", "--languages=Python", "-f", "-", "-L", "-"]
    listed = subprocess.run(
        ["ctags", *options],
        input="\n".join(map(str, paths)),
        capture_output=True,
        text=True,
        check=True,
    )
    tags = [json.loads(line) for line in listed.stdout.splitlines()]
    return Counter(
        (tag["path"], tag["line"], tag["kind"], tag["name"])
        for tag in tags
        if tag["kind"] in KINDS.values()
    )


def our_tags(paths: list[Path]) -> Counter[Tag]:
    return Counter(
        (str(path), definition.line, KINDS[definition.kind], definition.name)
        for path in paths
        for definition in extract("python", path.read_bytes(), seconds_max=30).definitions
        if definition.kind in KINDS
    )


def is_justified(tag: Tag) -> bool:
    line = Path(tag[0]).read_text(encoding="utf-8").splitlines()[tag[1] - 1]
    return any(reason.search(line) for reason in JUSTIFIED.values())


def test_the_definitions_are_those_of_universal_ctags() -> None:
    paths = sources()
    ours, theirs = our_tags(paths), tags_of_ctags(paths)
    different = [*(ours - theirs), *(theirs - ours)]
    assert sum((ours & theirs).values()) > DEFINITIONS_MIN
    assert [tag for tag in different if not is_justified(tag)] == []
    assert len(different) < 20
