"""A file that was read right after its mtime is compared again; one that was read later is not."""

import os
from pathlib import Path

import pytest

from tsuzuki.collectors.codeindex.answers.changed_files import tree_changes
from tsuzuki.collectors.codeindex.answers.freshness import FreshFiles
from tsuzuki.collectors.codeindex.doubt import COARSE_TICK_NS, TICK_NS, is_in_doubt
from tsuzuki.collectors.codeindex.index_file import IndexFile
from tsuzuki.collectors.codeindex.parse import ParseLimits, parse_file
from tsuzuki.collectors.codeindex.parsed_file import FileToParse, ParsedFile, SameFile

from .conftest import Build

SECOND_NS = 1_000_000_000
FINE_NS = 1_700_000_000 * SECOND_NS + 123_456_789
COARSE_NS = 1_700_000_000 * SECOND_NS


@pytest.mark.parametrize(
    ("mtime_ns", "later_ns", "expected"),
    [
        (FINE_NS, TICK_NS - 1, True),
        (FINE_NS, TICK_NS, False),
        (COARSE_NS, COARSE_TICK_NS - 1, True),
        (COARSE_NS, COARSE_TICK_NS, False),
        (FINE_NS, -SECOND_NS, True),
    ],
    ids=["same tick", "later", "same second", "seconds later", "mtime ahead of our clock"],
)
def test_the_doubt_lasts_as_long_as_a_tick_of_the_file_system(
    mtime_ns: int, later_ns: int, *, expected: bool
) -> None:
    assert is_in_doubt(mtime_ns, mtime_ns + later_ns) is expected


def test_the_moment_of_reading_is_noted_before_the_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def a(): ...\n")
    new = parse_file(str(tmp_path), FileToParse(path="a.py"), ParseLimits())
    assert isinstance(new, ParsedFile)
    same = parse_file(str(tmp_path), FileToParse(path="a.py", known_hash=new.hash), ParseLimits())
    assert isinstance(same, SameFile)
    assert new.read_at_ns is not None
    assert same.read_at_ns is not None
    assert new.read_at_ns <= same.read_at_ns


def test_a_file_that_rested_before_it_was_read_is_not_compared_again(
    build: Build, tree: Path, index_folder: Path
) -> None:
    files = [path for path in tree.rglob("*.py") if ".git" not in path.parts]
    for path in files:
        found = path.stat()
        rested_ns = found.st_mtime_ns - 2 * TICK_NS
        os.utime(path, ns=(rested_ns, rested_ns // 1_000_000 * 1_000_000 + 1))
    build()
    index = IndexFile.open_existing(tree, folder=index_folder)
    assert index is not None
    with index:
        fresh = FreshFiles(tree, index.connection)
        tree_changes(fresh)
    assert fresh.confirmed == []
