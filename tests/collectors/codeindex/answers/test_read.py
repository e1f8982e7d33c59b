"""Reading a symbol by its path, and lines of a file."""

import pytest

from collectors.codeindex.answers.indexed_tree import IndexedTree
from tsuzuki.collectors.codeindex.answers.read import AmbiguousSymbol, read_lines, read_symbol
from tsuzuki.model.errors import NotFound, UsageError

SOURCE = """
class Outer:
    @property
    def size(self):
        return 1

    @size.setter
    def size(self, value):
        pass

    class Inner:
        def run(self):
            return "inner"


def run():
    return "top"
"""


@pytest.fixture
def source(tree: IndexedTree) -> IndexedTree:
    tree.write({"pkg/a.py": SOURCE})
    tree.index()
    return tree


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("Inner/run", 12, 13),
        ("Outer/Inner/run", 12, 13),
        ("Outer.Inner.run", 12, 13),
        ("Outer::Inner::run", 12, 13),
        ("/run", 16, 17),
        ("Outer/size[0]", 3, 5),
        ("size[1]", 7, 9),
    ],
)
def test_a_symbol_is_read_by_its_path(source: IndexedTree, text: str, start: int, end: int) -> None:
    excerpt = read_symbol(source.files(), text)
    assert (excerpt.start, excerpt.end) == (start, end)


def test_an_ambiguous_name_is_answered_with_candidates_that_work(source: IndexedTree) -> None:
    with pytest.raises(AmbiguousSymbol) as refused:
        read_symbol(source.files(), "run")
    assert refused.value.candidates == [
        "pkg/a.py:Outer/Inner/run (method, line 12)",
        "pkg/a.py:run (function, line 16)",
    ]
    with pytest.raises(AmbiguousSymbol) as refused:
        read_symbol(source.files(), "Outer/size")
    assert [text.partition(" ")[0] for text in refused.value.candidates] == [
        "pkg/a.py:Outer/size[0]",
        "pkg/a.py:Outer/size[1]",
    ]
    assert refused.value.as_dict()["candidates"] == refused.value.candidates


@pytest.mark.parametrize("text", ["size[2]", "nothing", "Inner/size", "/size"])
def test_a_symbol_that_is_not_there_is_not_guessed(source: IndexedTree, text: str) -> None:
    with pytest.raises(NotFound):
        read_symbol(source.files(), text)


def test_a_long_class_is_shown_as_its_members(tree: IndexedTree) -> None:
    methods = "".join(f"    def m{number}(self):\n        pass\n" for number in range(150))
    tree.write({"a.py": f"class Long:\n{methods}"})
    excerpt = read_symbol(tree.files(), "Long", changed=["a.py"])
    assert excerpt.is_outline
    assert len(excerpt.lines) == 151
    whole = read_symbol(tree.files(), "Long", changed=["a.py"], whole=True)
    assert len(whole.lines) == 301


def test_lines_of_a_file(source: IndexedTree) -> None:
    file = source.files().get("pkg/a.py")
    assert file is not None
    assert read_lines(file, 16, 99).lines == [(16, "def run():"), (17, '    return "top"')]
    with pytest.raises(NotFound):
        read_lines(file, 18, 18)
    for start, end in ((0, 1), (5, 4)):
        with pytest.raises(UsageError):
            read_lines(file, start, end)
