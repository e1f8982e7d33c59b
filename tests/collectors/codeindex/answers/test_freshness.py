"""Whatever an answer quotes is what stands in the file now."""

import os

import pytest

from collectors.codeindex.answers.indexed_tree import IndexedTree
from tsuzuki.collectors.codeindex.answers.read import read_symbol
from tsuzuki.collectors.codeindex.answers.search import Query, search_names

MODULE = "def first():\n    return 1\n\n\ndef second():\n    return 2\n"


def test_a_file_that_did_not_change_is_taken_from_the_index(tree: IndexedTree) -> None:
    tree.write({"a.py": MODULE})
    tree.index()
    files = tree.files()
    file = files.get("a.py")
    assert file is not None
    assert [symbol.name for symbol in file.symbols] == ["first", "second"]
    assert not file.was_parsed
    assert files.reread == []


@pytest.mark.parametrize("restore_mtime", [False, True])
def test_45_lines_above_a_function_move_its_lines_and_never_its_body(
    tree: IndexedTree, restore_mtime: bool
) -> None:
    tree.write({"a.py": MODULE})
    tree.index()
    where = tree.root / "a.py"
    before = where.stat()
    tree.write({"a.py": "# comment\n" * 45 + MODULE})
    if restore_mtime:
        os.utime(where, ns=(before.st_atime_ns, before.st_mtime_ns))
    excerpt = read_symbol(tree.files(), "second")
    assert (excerpt.start, excerpt.end) == (50, 51)
    assert [text for _, text in excerpt.lines] == ["def second():", "    return 2"]
    (found,) = search_names(tree.files(), Query.of("second"), limit=5).found
    assert found.symbol.line == 50


def test_an_edit_of_the_same_size_and_time_is_seen(tree: IndexedTree) -> None:
    tree.write({"a.py": MODULE})
    tree.index()
    where = tree.root / "a.py"
    before = where.stat()
    tree.write({"a.py": MODULE.replace("second", "sec0nd")})
    os.utime(where, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert search_names(tree.files(), Query.of("second"), limit=5).found == []
    file = tree.files().get("a.py")
    assert file is not None
    assert file.was_parsed


def test_a_file_that_vanished_is_not_quoted(tree: IndexedTree) -> None:
    tree.write({"a.py": MODULE, "b.py": MODULE})
    tree.index()
    (tree.root / "a.py").unlink()
    result = search_names(tree.files(), Query.of("second"), limit=5)
    assert [one.symbol.path for one in result.found] == ["b.py"]
    assert result.total == 1


def test_a_link_is_not_followed(tree: IndexedTree) -> None:
    tree.write({"a.py": MODULE})
    (tree.root / "link.py").symlink_to("a.py")
    assert tree.files().get("link.py") is None


def test_a_write_after_the_reading_is_noticed(tree: IndexedTree) -> None:
    tree.write({"a.py": MODULE, "b.py": MODULE})
    files = tree.files()
    files.get("a.py")
    files.get("missing.py")
    assert files.settled()
    tree.write({"b.py": "changed = 1\n"})
    assert files.settled()
    tree.write({"a.py": MODULE})
    assert not files.settled()


def test_a_file_that_appears_after_it_was_looked_for_is_noticed(tree: IndexedTree) -> None:
    files = tree.files()
    files.get("missing.py")
    tree.write({"missing.py": MODULE})
    assert not files.settled()


def test_a_file_in_shift_jis_is_quoted_as_text(tree: IndexedTree) -> None:
    where = tree.root / "a.py"
    where.write_bytes("def 関数():\n    return '表'\n".encode("cp932"))
    tree.index()
    excerpt = read_symbol(tree.files(), "関数")
    assert excerpt.lines[1] == (2, "    return '表'")
