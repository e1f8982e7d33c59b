"""What was parsed for an answer is stored in the index, and no answer waits for that."""

import sqlite3
from contextlib import closing

import pytest

from collectors.codeindex.answers.indexed_tree import IndexedTree
from support.threads import in_background
from tsuzuki.collectors.codeindex.answers.store_back import store_back
from tsuzuki.collectors.codeindex.index_file import BUSY_SECONDS, IndexFile


@pytest.fixture
def index(tree: IndexedTree) -> IndexFile:
    """Of one file, which has changed since."""
    tree.write({"a.py": "def before():\n    pass\n"})
    tree.index()
    tree.write({"a.py": "def after_it():\n    pass\n"})
    return tree.index_file


def stored(tree: IndexedTree, index: IndexFile) -> int:
    files = tree.files()
    file = files.get("a.py")
    assert file is not None
    assert [symbol.name for symbol in file.symbols] == ["after_it"]
    return store_back(index, files, listed={"a.py"}, now_ns=1)


def test_a_file_that_was_parsed_is_stored_once(tree: IndexedTree, index: IndexFile) -> None:
    assert stored(tree, index) == 1
    assert stored(tree, index) == 0


def test_an_answer_does_not_wait_for_the_lock_of_another_writer(
    tree: IndexedTree, index: IndexFile
) -> None:
    (file,) = [row[2] for row in index.connection.execute("PRAGMA database_list")]
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        answered = in_background(lambda: stored(tree, index))
        assert answered.result(BUSY_SECONDS / 2) == 0
        other.execute("ROLLBACK")
    assert index.connection.execute("PRAGMA busy_timeout").fetchone() == (BUSY_SECONDS * 1000,)
    assert stored(tree, index) == 1
