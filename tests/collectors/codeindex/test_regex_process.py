"""An expression of a caller from outside cannot hold up the process that answers."""

from pathlib import Path

import pytest

from tsuzuki.collectors.codeindex.answers.regex_process import search_regex_in_process
from tsuzuki.collectors.codeindex.answers.text_search import TextQuery
from tsuzuki.model.errors import UsageError


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_text("one\ntwo 22\n" + "a" * 60 + "!\n", encoding="utf-8")
    return tmp_path


def test_lines_are_found_as_by_a_search_in_this_process(tree: Path) -> None:
    query = TextQuery(text=r"\d+", is_regex=True)
    (line,), has_more = search_regex_in_process(tree, query, limit=5, scanned=["a.txt"], listed=[])
    assert (line.line, line.column, line.text, has_more) == (2, 4, "two 22", False)


def test_an_expression_that_takes_for_ever_is_refused(tree: Path) -> None:
    query = TextQuery(text="(a+)+$", is_regex=True)
    with pytest.raises(UsageError) as raised:
        search_regex_in_process(tree, query, limit=5, scanned=["a.txt"], listed=[], seconds_max=0.5)
    assert raised.value.specific_code == "regex_slow"


def test_an_expression_of_any_length_is_refused(tree: Path) -> None:
    with pytest.raises(UsageError):
        search_regex_in_process(
            tree, TextQuery(text="a" * 501, is_regex=True), limit=5, scanned=["a.txt"], listed=[]
        )
