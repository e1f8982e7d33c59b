"""Names are followed through scopes, imports, modules that pass them on, classes and types."""

import pytest

from collectors.codeindex.answers.indexed_tree import IndexedTree
from tsuzuki.collectors.codeindex.answers.references import ReferenceQuery, find_references


def meant(tree: IndexedTree, files: dict[str, str], name: str) -> dict[str, str | None]:
    """By place of a use: the definition that it means for sure, or None."""
    tree.write(files)
    tree.index()
    found = find_references(tree.files(), ReferenceQuery(name=name)).uses
    return {f"{one.path}:{one.line}:{one.column}": one.definition for one in found}


def last_meant(tree: IndexedTree, files: dict[str, str], name: str) -> str | None:
    return [*meant(tree, files, name).values()][-1]


PYTHON_LIBRARY = """
LIMIT = 3

class Base:
    shared = 1
    def close(self): ...

class Color(Base):
    RED = 1
    @property
    def size(self): ...
    def own(self):
        return self.size + self.shared

def make() -> Color: ...

def receiver(signal): ...

theme: Color = make()
""".lstrip()


@pytest.mark.parametrize(
    ("name", "source", "definition"),
    [
        ("RED", "from lib import Color\nColor.RED", "lib.py:8"),
        ("RED", "import lib\nlib.Color.RED", "lib.py:8"),
        ("RED", "from lib import Color as C\nC.RED", "lib.py:8"),
        ("Color", "from lib import Color\nColor.RED", "lib.py:7"),
        ("Color", "import lib\nlib.Color.RED", "lib.py:7"),
        ("LIMIT", "from lib import LIMIT\nif LIMIT > 2: ...", "lib.py:1"),
        ("LIMIT", "import lib as other\nother.LIMIT", "lib.py:1"),
        ("size", "from lib import Color\nColor().size", "lib.py:10"),
        ("size", "from lib import Color\ndef f(c: Color): return c.size", "lib.py:10"),
        ("size", "from lib import Color\ndef f(c: Color | None): return c.size", "lib.py:10"),
        ("size", "from lib import make\nc = make()\nc.size", "lib.py:10"),
        ("size", "from lib import theme\ntheme.size", "lib.py:10"),
        ("close", "from lib import Color\nColor().close()", "lib.py:5"),
        (
            "shared",
            "from lib import Color\nclass D(Color):\n  def f(self): self.shared",
            "lib.py:4",
        ),
        (
            "close",
            "from lib import Base\nclass D(Base):\n  def f(self): super().close()",
            "lib.py:5",
        ),
        ("RED", "from lib import Color\nmatch x:\n  case Color.RED: ...", "lib.py:8"),
        ("RED", "from elsewhere import Color\nColor.RED", None),
        ("RED", "from lib import Color\ndef f(Color): return Color.RED", None),
        ("size", "def f(c): return c.size", None),
        ("LIMIT", "from lib import *\nLIMIT", "lib.py:1"),
    ],
)
def test_what_python_names(
    tree: IndexedTree, name: str, source: str, definition: str | None
) -> None:
    files = {"lib.py": PYTHON_LIBRARY, "use.py": f"{source}\n"}
    assert last_meant(tree, files, name) == definition


@pytest.mark.parametrize(
    "source",
    [
        "def wrap(receiver):\n    return receiver",
        "def wrap(x):\n    def inner(receiver):\n        return x(receiver)\n    return inner, receiver(1)",
        "@other\ndef f(receiver=None): return receiver",
        "f = lambda receiver: receiver",
        "[receiver for receiver in x]",
        "def f():\n    for receiver in x: receiver",
        "def f():\n    with x as receiver: receiver",
        "def f():\n    try: ...\n    except E as receiver: receiver",
        "def f():\n    if (receiver := 1): receiver",
        "def f():\n    receiver, b = 1, 2\n    return receiver",
        "def f(x):\n    match x:\n        case receiver: return receiver",
    ],
)
def test_what_a_function_binds_is_not_the_import(tree: IndexedTree, source: str) -> None:
    files = {"lib.py": PYTHON_LIBRARY, "use.py": f"from lib import receiver\n\n{source}\n"}
    exact = {place for place, one in meant(tree, files, "receiver").items() if one}
    expected = {"use.py:1:16"}
    if "receiver(1)" in source:
        expected.add("use.py:6:18")
    assert exact == expected


@pytest.mark.parametrize(
    ("source", "is_exact"),
    [
        ("x = [receiver for y in receiver]", True),
        ("def f(a=receiver): ...", True),
        ("class A:\n    receiver = 1\n    def f(self): return receiver", True),
        ("class A:\n    receiver = 1\n    other = receiver", False),
        ("def f():\n    global receiver\n    receiver = 1", True),
        ("try:\n    from c import receiver\nexcept ImportError:\n    pass\nreceiver", False),
    ],
)
def test_scopes_of_python_end_where_they_end(
    tree: IndexedTree, source: str, is_exact: bool
) -> None:
    files = {"lib.py": PYTHON_LIBRARY, "use.py": f"from lib import receiver\n\n{source}\n"}
    assert (last_meant(tree, files, "receiver") == "lib.py:16") is is_exact


def test_a_package_of_python_passes_names_on(tree: IndexedTree) -> None:
    files = {
        "pkg/__init__.py": "from .inner import watch\nfrom .rest import *\n",
        "pkg/inner.py": "from ._impl import watch\n",
        "pkg/_impl.py": "def watch(): ...\n",
        "pkg/rest.py": "def other(): ...\n",
        "third/__init__.py": "def watch(): ...\n",
        "use.py": "from pkg import watch, other\nwatch()\nimport third\nthird.watch()\n",
    }
    found = meant(tree, files, "watch")
    assert {place: one for place, one in found.items() if place.startswith("use")} == {
        "use.py:1:16": "pkg/_impl.py:1",
        "use.py:2:0": "pkg/_impl.py:1",
        "use.py:4:6": "third/__init__.py:1",
    }
    tree.write({"user.py": "from pkg import other\nother()\n"})
    assert last_meant(tree, {}, "other") == "pkg/rest.py:1"


TYPESCRIPT_LIBRARY = """
export enum Color { RED = 1 }
export interface Thing { size: number }
export const LIMIT = 3
export function make(): Thing { return { size: LIMIT } }
export function over(a: string): void
export function over(a: number): void
export function over(a: any) {}
export class Base { protected shared = 1; close() {} }
""".lstrip()


@pytest.mark.parametrize(
    ("name", "source", "definition"),
    [
        ("Color", "import { Color } from './lib'\nuse(Color.RED)", "lib.ts:1"),
        ("RED", "import { Color } from './lib'\nuse(Color.RED)", "lib.ts:1"),
        ("RED", "import * as lib from './lib.js'\nuse(lib.Color.RED)", "lib.ts:1"),
        ("LIMIT", "import { LIMIT as max } from './lib'", "lib.ts:3"),
        ("LIMIT", "import { LIMIT } from './lib'\nconst x = `${LIMIT}`", "lib.ts:3"),
        ("size", "import { Thing } from './lib'\nconst f = (t: Thing) => t.size", "lib.ts:2"),
        ("size", "import { make } from './lib'\nmake().size", "lib.ts:2"),
        ("over", "import { over } from './lib'\nover(1)", "lib.ts:5"),
        ("close", "import { Base } from './lib'\nnew Base().close()", "lib.ts:8"),
        (
            "shared",
            "import { Base } from './lib'\nclass D extends Base { f() { this.shared } }",
            "lib.ts:8",
        ),
        ("Color", "import { Color } from 'elsewhere'\nColor.RED", None),
        ("LIMIT", "import { LIMIT } from './lib'\nfunction f(LIMIT) { return LIMIT }", None),
        ("LIMIT", "import { LIMIT } from './lib'\n{ const LIMIT = 1; use(LIMIT) }", "use.ts:2"),
        ("LIMIT", "import { LIMIT } from './lib'\nconst f = ({ LIMIT }) => LIMIT", None),
        ("LIMIT", "import { LIMIT } from './lib'\ntry {} catch (LIMIT) { use(LIMIT) }", None),
        ("LIMIT", "import { LIMIT } from './lib'\nfor (const LIMIT of x) use(LIMIT)", None),
        ("LIMIT", "import { LIMIT } from './lib'\nconst f = (a = LIMIT) => a", "lib.ts:3"),
        ("LIMIT", "const { LIMIT } = require('./lib')\nuse(LIMIT)", "lib.ts:3"),
    ],
)
def test_what_typescript_names(
    tree: IndexedTree, name: str, source: str, definition: str | None
) -> None:
    files = {"lib.ts": TYPESCRIPT_LIBRARY, "use.ts": f"{source}\n"}
    assert last_meant(tree, files, name) == definition


def test_packages_of_a_workspace_pass_names_on(tree: IndexedTree) -> None:
    """Two packages have a `watch`; each use is that of the package that its import leads to."""
    files = {
        "tsconfig.json": '{ "compilerOptions": { // paths\n "paths": { "@v/*": ["packages/*/src"], }, } }',
        "packages/reactivity/src/watch.ts": "export function watch() {}\n",
        "packages/reactivity/src/index.ts": "export { watch } from './watch'\n",
        "packages/core/src/apiWatch.ts": (
            "import { watch as base } from '@v/reactivity'\nexport function watch() { base() }\n"
        ),
        "packages/core/src/index.ts": "export * from './apiWatch'\n",
        "packages/dom/package.json": '{"name": "dom"}',
        "packages/dom/src/index.ts": "export * from '@v/core'\n",
        "packages/other/src/index.ts": "export * from 'published'\n",
        "a.ts": "import { watch } from 'dom'\nwatch()\n",
        "b.ts": "import { watch } from '@v/reactivity'\nwatch()\n",
        "c.ts": "import { watch } from '@v/other'\nwatch()\n",
    }
    found = meant(tree, files, "watch")
    core, reactivity = "packages/core/src/apiWatch.ts:2", "packages/reactivity/src/watch.ts:1"
    assert [found[f"{path}.ts:2:0"] for path in "abc"] == [core, reactivity, None]
    assert found["packages/core/src/apiWatch.ts:1:9"] == reactivity
    assert found["packages/reactivity/src/index.ts:1:9"] == reactivity


GO = {
    "go.mod": "module example.com/shop\n",
    "store/store.go": (
        "package store\n\nconst Limit = 3\n\nvar Names []string\n\n"
        "type Base struct { Label string }\n\n"
        "type Item struct {\n\tBase\n\tPrice int\n}\n\n"
        "func (i *Item) Total() int { return i.Price }\n\n"
        "func NewItem() *Item { return &Item{Price: Limit} }\n"
    ),
    "store/other.go": "package store\n\nfunc max() int { return Limit }\n",
}


@pytest.mark.parametrize(
    ("name", "body", "definition"),
    [
        ("Limit", "_ = store.Limit", "store/store.go:3"),
        ("Names", "store.Names = nil", "store/store.go:5"),
        ("Item", "var x store.Item", "store/store.go:9"),
        ("Price", "_ = store.Item{Price: 1}", "store/store.go:11"),
        ("Price", "x := store.NewItem()\n\t_ = x.Price", "store/store.go:11"),
        ("Price", "var x store.Item\n\t_ = x.Price", "store/store.go:11"),
        ("Total", "(&store.Item{}).Total()", "store/store.go:14"),
        ("Label", "_ = store.NewItem().Label", "store/store.go:7"),
        ("Limit", "store := other()\n\t_ = store.Limit", None),
        ("Limit", "Limit := 1\n\t_ = Limit", None),
        ("Price", "_ = unknown().Price", None),
    ],
)
def test_what_go_names(tree: IndexedTree, name: str, body: str, definition: str | None) -> None:
    use = f'package use\n\nimport "example.com/shop/store"\n\nfunc f() {{\n\t{body}\n}}\n'
    assert last_meant(tree, {**GO, "use/use.go": use}, name) == definition


def test_a_name_of_go_is_seen_in_its_package(tree: IndexedTree) -> None:
    files = {**GO, "elsewhere/limit.go": "package elsewhere\n\nconst Limit = 4\n"}
    found = meant(tree, files, "Limit")
    assert found["store/other.go:3:24"] == "store/store.go:3"
    assert found["store/store.go:16:43"] == "store/store.go:3"


def test_what_there_was_no_time_for_is_counted(
    tree: IndexedTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree.write({f"f{number}.py": "print(target)\n" for number in range(3)})
    tree.index()
    monkeypatch.setattr("tsuzuki.collectors.codeindex.answers.references.SECONDS_MAX", -1.0)
    found = find_references(tree.files(), ReferenceQuery(name="target"))
    assert (found.uses, found.files_left_out) == ([], 3)


def test_variables_that_are_made_of_each_other_are_not_followed_for_ever(tree: IndexedTree) -> None:
    """Each of nine variables is given a member of each other one: there are more ways than time."""
    names = "abcdefghi"
    lines = [f"    {one} = {other}.step()" for one in names for other in names if one != other]
    source = "\n".join(["class A:", "    def step(self): ...", "", "def f():", *lines, ""])
    assert set(meant(tree, {"a.py": source}, "step").values()) == {None}
