"""A tree and its index, for every test of an answer."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from collectors.codeindex.answers.indexed_tree import IndexedTree


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[IndexedTree]:
    made = IndexedTree(tmp_path / "tree", tmp_path / "indexes")
    yield made
    made.close()
