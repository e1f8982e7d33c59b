"""The map ranks what is used most, the same each time."""

from collectors.codeindex.answers.indexed_tree import IndexedTree
from tsuzuki.collectors.codeindex.answers.map import code_map, name_weight, page_rank

FILES = {
    "core.py": "def central_function(): ...\ndef lonely_function(): ...\n",
    "side.py": "def sideways_function(): ...\n",
    "a.py": "from core import central_function\ncentral_function()\n",
    "b.py": "from core import central_function\ncentral_function()\ndef entry_point(): ...\n",
    "c.py": "from side import sideways_function\nsideways_function()\ndef other_entry(): ...\n",
}


def test_the_most_used_file_comes_first(tree: IndexedTree) -> None:
    tree.write(FILES)
    tree.index()
    first, *_ = ranked = code_map(tree.files(), limit=10, symbols_max=1)
    assert first.path == "core.py"
    assert [symbol.name for symbol in first.symbols] == ["central_function"]
    assert {one.path for one in ranked} == {"core.py", "side.py", "b.py", "c.py"}
    assert code_map(tree.files(), limit=10, symbols_max=1) == ranked


def test_a_focus_ranks_what_it_uses_higher(tree: IndexedTree) -> None:
    tree.write(FILES)
    tree.index()
    ranked = code_map(tree.files(), limit=10, symbols_max=1, focus_paths=["c.py"])
    paths = [one.path for one in ranked]
    assert paths.index("side.py") < paths.index("core.py")
    by_name = code_map(tree.files(), limit=10, symbols_max=1, focus_names=["sideways_function"])
    assert by_name[0].path == "side.py"


def test_ranks_are_shares_of_one() -> None:
    ranks = page_rank([1, 2, 3], {1: {2: 1.0}, 2: {3: 2.0}}, {1})
    assert abs(sum(ranks.values()) - 1) < 1e-6
    assert page_rank([], {}, set()) == {}


def test_a_telling_name_weighs_more() -> None:
    weights = [
        name_weight("parse_config", 1),
        name_weight("get", 1),
        name_weight("get", 9),
        name_weight("_get", 9),
    ]
    assert weights == sorted(weights, reverse=True)
    assert len({*weights}) == 4
