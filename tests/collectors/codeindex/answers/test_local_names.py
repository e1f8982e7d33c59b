"""A use of a name that a function binds itself is no use of the definition of that name."""

import pytest

from collectors.codeindex.answers.indexed_tree import IndexedTree
from tsuzuki.collectors.codeindex.answers.references import ReferenceQuery, find_references

LOCAL = [
    "def f(target):\n    use(target)",
    "def f(a, *, target: int = 3):\n    use(target)",
    "def f(\n    a,\n    **target,\n):\n    use(target)",
    "def f():\n    target = 3\n    use(target)",
    "def f():\n    a, target = 3, 4\n    use(target)",
    "def f():\n    (target, a) = 3, 4\n    use(target)",
    "def f():\n    target: int = 3\n    use(target)",
    "def f():\n    a = target = 3\n    use(target)",
    "def f():\n    target+=1\n    use(target)",
    "def f():\n    for a, target in b:\n        use(target)",
    "def f():\n    return [use(target) for target in b]",
    "def f():\n    with open(a) as target:\n        use(target)",
    "def f():\n    try: ...\n    except E as target:\n        use(target)",
    "def f():\n    return lambda target: use(target)",
    "def f():\n    if (target := a): use(target)",
    "f = lambda target: use(target)",
    "def f():\n    a = 'it\\'s'\n    target = 'x'\n    use(target)",
    "def f(target):\n    def g():\n        use(target)",
    "class A:\n    def f(self, target):\n        use(target)",
    "def f():\n    from elsewhere import other as target\n    use(target)",
]
NOT_LOCAL = [
    "use(target)",
    "def f():\n    use(target)",
    "def f(a=target):\n    use(target)",
    "def f(a):\n    use(a, target=target)",
    "def f(a):\n    use(\n        a,\n        target=target,\n    )",
    "def f():\n    global target\n    target = 3\n    use(target)",
    "def f():\n    a.target = 3\n    use(target)",
    "def f():\n    a = 'target = 3'  # target = 3\n    use(target)",
    "def f():\n    if target == 3:\n        use(target)",
    "def f():\n    for a in target:\n        use(target)",
    "def g(target): ...\n\ndef f():\n    use(target)",
]


def last_use(tree: IndexedTree, source: str) -> bool:
    """Whether the last use of `target` in a file that imports it is exact."""
    tree.write({"lib.py": "target = 1\n", "user.py": f"from lib import target\n\n{source}\n"})
    tree.index()
    found = find_references(tree.files(), ReferenceQuery(name="target")).uses
    last = max(
        (one for one in found if one.path == "user.py"), key=lambda one: (one.line, one.column)
    )
    return last.confidence.is_exact


@pytest.mark.parametrize("source", LOCAL)
def test_a_local_variable_is_another(tree: IndexedTree, source: str) -> None:
    assert not last_use(tree, source)


@pytest.mark.parametrize("source", NOT_LOCAL)
def test_what_no_function_binds_is_the_definition(tree: IndexedTree, source: str) -> None:
    assert last_use(tree, source)


@pytest.mark.parametrize(
    ("source", "is_exact"),
    [
        ("from pkg.target import other\nuse(target)\n", False),
        ("import pkg.target\nuse(target)\n", False),
        ("import target\nuse(target)\n", False),
        ("from pkg.lib import target as other\nuse(target)\n", False),
        ("def f():\n    from pkg.lib import target\n\ndef g():\n    use(target)\n", False),
        ("def f():\n    from pkg.lib import target\n    use(target)\n", True),
        ("from pkg.lib import other, target\nuse(target)\n", True),
        ("from pkg.lib import (\n    include,\n    target,\n)\nuse(target)\n", True),
        ("from pkg import lib\ndef f(lib):\n    lib.target()\n", False),
        ("from pkg import lib\ndef f():\n    lib.target()\n", True),
        ("from pkg.lib import lib\ndef f():\n    lib.target()\n", False),
    ],
)
def test_an_import_counts_where_it_gives_the_name(
    tree: IndexedTree, source: str, is_exact: bool
) -> None:
    module = "def target(): ...\n"
    tree.write({"pkg/lib.py": module, "user.py": source})
    tree.index()
    found = find_references(tree.files(), ReferenceQuery(name="target")).uses
    assert [one.confidence.is_exact for one in found][-1] is is_exact


def test_an_import_of_the_standard_library_is_none_of_a_file_of_the_tree(tree: IndexedTree) -> None:
    module = "class Stream: ...\n"
    tree.write({"pkg/io.py": module, "user.py": "from io import Stream\nStream()\n"})
    tree.index()
    found = find_references(tree.files(), ReferenceQuery(name="Stream")).uses
    assert [one.confidence.is_exact for one in found] == [False, False]


def test_a_module_of_the_tree_is_no_variable_of_another(tree: IndexedTree) -> None:
    tree.write(
        {
            "pkg/config.py": "",
            "pkg/plugin/base.py": "config = None\n",
            "pkg/user.py": "from . import config\nuse(config)\n",
            "pkg/deep/user.py": "from .. import config\n",
        }
    )
    tree.index()
    found = find_references(tree.files(), ReferenceQuery(name="config")).uses
    assert [one.confidence.is_exact for one in found] == [False, False, False]


def test_a_part_of_a_modules_name_is_no_use_of_a_function(tree: IndexedTree) -> None:
    tree.write(
        {
            "pkg/target/__init__.py": "",
            "pkg/target/lib.py": "def target(): ...\n",
            "user.py": "from pkg.target import lib\nfrom pkg import target\n",
        }
    )
    tree.index()
    found = find_references(tree.files(), ReferenceQuery(name="target")).uses
    assert [(one.line, one.confidence.is_exact) for one in found] == [(1, False), (2, False)]


@pytest.mark.parametrize(
    ("name", "source", "is_exact"),
    [
        ("a.js", "import { target } from './lib.js'\nfunction f(target) { use(target) }", False),
        (
            "a.js",
            "import { target } from './lib.js'\nfunction f() { let target; g(target) }",
            False,
        ),
        ("a.js", "import { target } from './lib.js'\nconst f = () => { g(target) }", True),
        ("a.ts", "import { target } from './lib.js'\nfunction f(a: target) { g(target) }", True),
    ],
)
def test_functions_of_javascript_bind_names_too(
    tree: IndexedTree, name: str, source: str, is_exact: bool
) -> None:
    tree.write({"lib.js": "export const target = 1\n", name: source})
    tree.index()
    found = find_references(tree.files(), ReferenceQuery(name="target")).uses
    assert [one.confidence.is_exact for one in found if one.line == 2][-1] is is_exact
