"""The indexes by name are made when a build completes; answers are the same without them."""

import sqlite3
from contextlib import closing
from pathlib import Path

from collectors.codeindex.conftest import Build
from tsuzuki.collectors.codeindex.index_file import IndexFile, index_path
from tsuzuki.collectors.codeindex.service.answers import CodeAnswers

NAMES = ("symbols_by_name", "symbols_by_lower_name", "mentions_by_name")


def made(tree: Path, folder: Path) -> set[str]:
    with closing(sqlite3.connect(index_path(tree, folder))) as connection:
        rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'index'").fetchall()
    return {name for (name,) in rows} & {*NAMES}


def test_a_new_index_gets_them_with_its_first_completed_build(
    tree: Path, index_folder: Path, build: Build
) -> None:
    IndexFile.open(tree, folder=index_folder).close()
    assert made(tree, index_folder) == set()
    build()
    assert made(tree, index_folder) == {*NAMES}


def test_without_them_answers_are_the_same_and_the_next_build_makes_them(
    tree: Path, index_folder: Path, build: Build
) -> None:
    """As after a first build that was killed."""
    build()
    answers = CodeAnswers(tree, cwd=tree, folder=index_folder)
    found = answers.search("total").value, answers.references("total").value
    with closing(sqlite3.connect(index_path(tree, index_folder))) as connection:
        for name in NAMES:
            connection.execute(f"DROP INDEX {name}")
    assert (answers.search("total").value, answers.references("total").value) == found
    build()
    assert made(tree, index_folder) == {*NAMES}
