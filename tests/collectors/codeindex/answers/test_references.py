"""Which uses of a name are exact, and which only have the name."""

import pytest

from collectors.codeindex.answers.indexed_tree import IndexedTree
from tsuzuki.collectors.codeindex.answers.confidence import Confidence
from tsuzuki.collectors.codeindex.answers.read import resolve_symbol
from tsuzuki.collectors.codeindex.answers.references import (
    ReferenceLine,
    ReferenceQuery,
    find_references,
)

LIBRARY = """
def helper():
    return 1


class Server:
    def start(self):
        return self.stop()

    def stop(self):
        return helper()

    @classmethod
    def make(cls):
        return cls()


def local():
    return Server.make()
"""


def references(tree: IndexedTree, name: str, **query: object) -> list[ReferenceLine]:
    return find_references(tree.files(), ReferenceQuery(name=name, **query)).uses  # type: ignore[arg-type]


def by_line(found: list[ReferenceLine]) -> dict[str, Confidence]:
    return {f"{one.path}:{one.line}": one.confidence for one in found}


def test_a_use_in_the_file_of_its_definition_is_exact(tree: IndexedTree) -> None:
    tree.write({"pkg/lib.py": LIBRARY})
    tree.index()
    assert by_line(references(tree, "helper")) == {"pkg/lib.py:11": Confidence.SAME_FILE}
    assert by_line(references(tree, "stop")) == {"pkg/lib.py:8": Confidence.SAME_FILE}
    assert by_line(references(tree, "make")) == {"pkg/lib.py:19": Confidence.SAME_FILE}


@pytest.mark.parametrize(
    ("source", "confidence"),
    [
        ("from pkg.lib import helper\nhelper()\n", Confidence.IMPORTED),
        ("from .lib import helper\nhelper()\n", Confidence.IMPORTED),
        ("from pkg.lib import (\n    other,\n    helper,\n)\nhelper()\n", Confidence.IMPORTED),
        ("from pkg import lib\nlib.helper()\n", Confidence.IMPORTED),
        ("from . import lib\nlib.helper()\n", Confidence.IMPORTED),
        ("import lib\nlib.helper()\n", Confidence.IMPORTED),
        ("from pkg.lib import Server\nServer.helper()\n", Confidence.BY_NAME),
        ("from elsewhere.lib import helper\nhelper()\n", Confidence.BY_NAME),
        ("from elsewhere import lib\nlib.helper()\n", Confidence.BY_NAME),
        ("from elsewhere import helper\nhelper()\n", Confidence.BY_NAME),
        ("import elsewhere as lib\nlib.helper()\n", Confidence.BY_NAME),
        ("def run(thing):\n    thing.helper()\n", Confidence.BY_NAME),
        ("def run(helper):\n    return helper()\n", Confidence.BY_NAME),
        ("factory()().helper()\n", Confidence.BY_NAME),
    ],
)
def test_a_use_in_another_file_is_exact_if_the_text_shows_it(
    tree: IndexedTree, source: str, confidence: Confidence
) -> None:
    tree.write({"pkg/lib.py": LIBRARY, "pkg/user.py": source})
    tree.index()
    found = [one for one in references(tree, "helper") if one.path == "pkg/user.py"]
    assert found[-1].confidence is confidence
    assert found[-1].definition == ("pkg/lib.py:2" if confidence.is_exact else None)
    assert found[-1].definitions == 1


def test_of_two_modules_the_imported_one_is_meant(tree: IndexedTree) -> None:
    tree.write(
        {
            "a/tools.py": "def load(): ...\n",
            "b/tools.py": "def load(): ...\n",
            "main.py": "from b.tools import load\nload()\n",
            "other.py": "from tools import load\nload()\n",
        }
    )
    tree.index()
    found = references(tree, "load")
    assert {one.definition for one in found if one.path == "main.py"} == {"b/tools.py:1"}
    assert {one.confidence for one in found if one.path == "other.py"} == {Confidence.BY_NAME}
    assert {one.definitions for one in found} == {2}


def test_a_target_leaves_out_exact_uses_of_others(tree: IndexedTree) -> None:
    tree.write(
        {
            "a.py": "def load(): ...\nload()\n",
            "b.py": "def load(): ...\nload()\n",
            "c.py": "def run(x):\n    x.load()\n",
        }
    )
    tree.index()
    files = tree.files()
    target = resolve_symbol(files, "load", file=files.get("a.py"))
    found = references(tree, "load", targets=frozenset({target}))
    assert [(one.path, one.confidence.is_exact) for one in found] == [
        ("a.py", True),
        ("c.py", False),
    ]


def test_comments_and_strings_are_no_references(tree: IndexedTree) -> None:
    tree.write({"a.py": 'def load(): ...\n# load()\ntext = "load()"\n'})
    tree.index()
    assert references(tree, "load") == []


def test_a_use_moves_with_its_file(tree: IndexedTree) -> None:
    tree.write({"a.py": "def load(): ...\n\n\nload()\n"})
    tree.index()
    tree.write({"a.py": "# comment\n" * 45 + "def load(): ...\n\n\nload()\n"})
    (found,) = references(tree, "load")
    assert (found.line, found.text, found.definition) == (49, "load()", "a.py:46")


def test_kinds_narrow_the_references(tree: IndexedTree) -> None:
    tree.write({"a.py": "def load(): ...\n", "b.py": "from a import load\nload()\n"})
    tree.index()
    found = references(tree, "load", kinds=frozenset({"import"}))
    assert [one.line for one in found] == [1]


def test_of_30_definitions_in_three_languages_none_is_guessed(tree: IndexedTree) -> None:
    tree.write(
        {f"py{number}/tools.py": "def process(): ...\n" for number in range(10)}
        | {f"ts{number}/tools.ts": "export function process() {}\n" for number in range(10)}
        | {f"go{number}/tools.go": "package t\n\nfunc process() {}\n" for number in range(10)}
        | {
            "user.py": "def run(x):\n    x.process()\n    process()\n",
            "user.ts": "function run(x) {\n  x.process()\n  process()\n}\n",
            "user.go": "package u\n\nfunc run(x T) {\n\tx.process()\n\tprocess()\n}\n",
        }
    )
    tree.index()
    found = references(tree, "process")
    assert sorted(one.path for one in found) == sorted(["user.go", "user.py", "user.ts"] * 2)
    assert {(one.confidence, one.definition, one.definitions) for one in found} == {
        (Confidence.BY_NAME, None, 10)
    }


@pytest.mark.parametrize(
    ("files", "name", "expected"),
    [
        (
            {
                "a/a.go": "package a\n\nfunc Help() {}\n",
                "a/b.go": "package a\n\nfunc B() { Help() }\n",
            },
            "Help",
            {"a/b.go:3": Confidence.SAME_PACKAGE},
        ),
        (
            {
                "a.h": "int add(int a);\n",
                "a.c": "int add(int a) { return a; }\n",
                "b.c": "int main(void) { return add(1); }\n",
            },
            "add",
            {"b.c:1": Confidence.ONLY_DEFINITION},
        ),
        (
            {
                "lib.ts": "export function load() {}\n",
                "use.ts": 'import { load } from "./lib"\nload()\n',
                "other.js": 'import { load } from "elsewhere"\nload()\n',
                "lib.py": "def unrelated(): ...\nload()\n",
            },
            "load",
            {
                "use.ts:1": Confidence.IMPORTED,
                "use.ts:2": Confidence.IMPORTED,
                "other.js:1": Confidence.BY_NAME,
                "other.js:2": Confidence.BY_NAME,
            },
        ),
        (
            {
                "p/Foo.java": "package p;\nclass Foo {\n  int run() { return stop(); }\n  int stop() { return 1; }\n}\n"
            },
            "stop",
            {"p/Foo.java:3": Confidence.SAME_FILE},
        ),
    ],
)
def test_what_other_languages_show(
    tree: IndexedTree, files: dict[str, str], name: str, expected: dict[str, Confidence]
) -> None:
    tree.write(files)
    tree.index()
    assert by_line(references(tree, name)) == expected
