"""A file that was read right after its mtime is compared again; one that was read later is not."""

import os
from pathlib import Path

import pytest

from collectors.codeindex.conftest import Build
from tsuzuki.collectors.codeindex.answers.changed_files import tree_changes
from tsuzuki.collectors.codeindex.answers.freshness import FreshFiles
from tsuzuki.collectors.codeindex.index_file import IndexFile
from tsuzuki.collectors.codeindex.parsing.parse import ParseLimits, parse_file
from tsuzuki.collectors.codeindex.parsing.parsed_file import FileToParse, ParsedFile, SameFile
from tsuzuki.collectors.codeindex.tree.doubt import COARSE_TICK_NS, TICK_NS, is_in_doubt

SECOND_NS = 1_000_000_000
FINE_NS = 1_700_000_000 * SECOND_NS + 123_456_789
COARSE_NS = 1_700_000_000 * SECOND_NS


@pytest.mark.parametrize(
    ("mtime_ns", "ctime_ns", "later_ns", "expected"),
    [
        (FINE_NS, FINE_NS, TICK_NS - 1, True),
        (FINE_NS, FINE_NS, TICK_NS, False),
        (COARSE_NS, COARSE_NS, COARSE_TICK_NS - 1, True),
        (COARSE_NS, COARSE_NS, COARSE_TICK_NS, False),
        (FINE_NS, FINE_NS, -SECOND_NS, True),
        (FINE_NS - 9 * SECOND_NS, FINE_NS, -1, True),
    ],
    ids=["same tick", "later", "same second", "seconds later", "clock set back", "mtime set back"],
)
def test_the_doubt_lasts_as_long_as_a_tick_of_the_file_system(
    mtime_ns: int, ctime_ns: int, later_ns: int, *, expected: bool
) -> None:
    read_at_ns = max(mtime_ns, ctime_ns) + later_ns
    assert is_in_doubt(mtime_ns, ctime_ns, read_at_ns=read_at_ns) is expected


def test_the_moment_of_reading_is_noted_before_the_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def a(): ...\n")
    new = parse_file(str(tmp_path), FileToParse(path="a.py"), ParseLimits())
    assert isinstance(new, ParsedFile)
    same = parse_file(str(tmp_path), FileToParse(path="a.py", known_hash=new.hash), ParseLimits())
    assert isinstance(same, SameFile)
    assert new.read_at_ns is not None
    assert same.read_at_ns is not None
    assert new.read_at_ns <= same.read_at_ns


def compared_again(tree: Path, index_folder: Path) -> list[str]:
    index = IndexFile.open_existing(tree, folder=index_folder)
    assert index is not None
    with index:
        fresh = FreshFiles(tree, index.connection)
        tree_changes(fresh)
    return [same.path for same, _ in fresh.confirmed]


def wait_for_the_next_tick(tree: Path) -> None:
    """Until a file that is written now was changed well after those of the tree."""
    last_ns = max(path.stat().st_ctime_ns for path in tree.rglob("*"))
    probe = tree.parent / "probe"
    while not probe.exists() or probe.stat().st_mtime_ns < last_ns + 2 * TICK_NS:
        probe.write_text("")


def test_a_file_that_rested_before_it_was_read_is_not_compared_again(
    build: Build, tree: Path, index_folder: Path
) -> None:
    wait_for_the_next_tick(tree)
    build()
    assert compared_again(tree, index_folder) == []


def test_a_change_that_sets_size_and_mtime_back_is_seen_at_any_time(
    build: Build, tree: Path, index_folder: Path
) -> None:
    wait_for_the_next_tick(tree)
    build()
    wait_for_the_next_tick(tree)
    changed = tree / "main.py"
    before = changed.stat()
    changed.write_text(changed.read_text().replace("main", "niam"))
    os.utime(changed, ns=(before.st_atime_ns, before.st_mtime_ns))
    job = build()
    assert job.result is not None
    assert job.result.updated_files == 1
