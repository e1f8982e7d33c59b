"""Which names a query finds, and in which order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.codeindex.answers.indexed_tree import IndexedTree
from tsuzuki.collectors.codeindex.answers.path_filter import PathFilter
from tsuzuki.collectors.codeindex.answers.search import Match, Query, match_name, search_names
from tsuzuki.model.errors import UsageError

NAMES = """
class BuildJobManager:
    def start_build(self): ...
    def stop(self): ...
class HTTPServer2:
    def start(self): ...
def build(): ...
def rebuild_all(): ...
def Build(): ...
"""


@pytest.mark.parametrize(
    ("query", "name", "match"),
    [
        ("build", "build", Match.EXACT),
        ("BUILD", "build", Match.CASE),
        ("buildj", "BuildJobManager", Match.PREFIX),
        ("jobman", "BuildJobManager", Match.SUBSTRING),
        ("bldMan", "BuildJobManager", None),
        ("buMan", "BuildJobManager", Match.PARTS),
        ("man_bu", "BuildJobManager", None),
        ("BJM", "BuildJobManager", Match.PARTS),
        ("http_ser", "HTTPServer2", Match.PARTS),
        ("st_bu", "start_build", Match.PARTS),
        ("%", "start_build", None),
    ],
)
def test_how_a_query_matches_a_name(query: str, name: str, match: Match | None) -> None:
    assert match_name(query, name) is match


@given(st.text(min_size=1, max_size=12), st.text(min_size=1, max_size=12))
def test_a_name_always_matches_itself_and_its_pieces(left: str, right: str) -> None:
    assert match_name(left + right, left + right) is Match.EXACT
    assert match_name(left, left + right) is not None
    assert match_name(right, left + right) is not None


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("build", ["build", "Build", "BuildJobManager", "start_build", "rebuild_all"]),
        ("uild_", ["rebuild_all"]),
        ("buMan", ["BuildJobManager"]),
        ("BJM", ["BuildJobManager"]),
        ("server2", ["HTTPServer2"]),
        ("st", ["stop", "start", "start_build"]),
        ("BuildJobManager/st", ["stop", "start_build"]),
        ("'; DROP TABLE files --", []),
        ('"quoted"', []),
    ],
)
def test_the_best_matches_come_first(tree: IndexedTree, query: str, found: list[str]) -> None:
    tree.write({"a.py": NAMES})
    tree.index()
    result = search_names(tree.files(), Query.of(query), limit=10)
    assert [one.symbol.name for one in result.found] == found
    assert result.total == len(found)


def test_fresh_and_stored_names_are_found_alike(tree: IndexedTree) -> None:
    tree.write({"a.py": "old = 1\n", "b.py": NAMES})
    tree.index()
    tree.write({"a.py": NAMES})
    result = search_names(tree.files(), Query.of("buMan"), limit=10, changed=["a.py"])
    assert [one.symbol.path for one in result.found] == ["a.py", "b.py"]


def test_a_limit_shows_the_best_and_tells_the_total(tree: IndexedTree) -> None:
    tree.write({f"f{number}.py": "def build(): ...\n" for number in range(9)})
    tree.index()
    result = search_names(tree.files(), Query.of("build"), limit=4)
    assert (len(result.found), result.total) == (4, 9)


def test_kinds_and_paths_narrow_a_search(tree: IndexedTree) -> None:
    tree.write({"src/a.py": NAMES, "tests/a.py": NAMES})
    tree.index()
    query = Query.of("build", kinds=frozenset({"class"}), path_filter=PathFilter(["src/"]))
    (found,) = search_names(tree.files(), query, limit=10).found
    assert (found.symbol.path, found.symbol.name) == ("src/a.py", "BuildJobManager")


@pytest.mark.parametrize(
    ("patterns", "path", "passes"),
    [
        ([], "a/b.py", True),
        (["*.py"], "a/b.py", True),
        (["*.md"], "a/b.py", False),
        (["a"], "a/b.py", True),
        (["!a"], "a/b.py", False),
        (["!tests"], "a/b.py", True),
        (["*.py", "!a/b.py"], "a/b.py", False),
        (["/b.py"], "a/b.py", False),
        (["a/**/b.py"], "a/b.py", True),
    ],
)
def test_patterns_of_paths(patterns: list[str], path: str, passes: bool) -> None:
    assert PathFilter(patterns)(path) is passes


def test_a_misspelt_name_is_answered_with_a_guess(tree: IndexedTree) -> None:
    tree.write({"a.py": NAMES})
    tree.index()
    result = search_names(tree.files(), Query.of("BuildJobManagre"), limit=10)
    assert (result.found, result.did_you_mean) == ([], "BuildJobManager")


@pytest.mark.parametrize("text", ["", "  ", "/", "//"])
def test_a_query_without_a_name_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        Query.of(text)
