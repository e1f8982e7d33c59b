"""Every identifier that has the name and is no definition of it is a use, in whatever syntax it stands."""

import pytest

from collectors.codeindex.answers.indexed_tree import IndexedTree
from tsuzuki.collectors.codeindex.answers.references import ReferenceQuery, find_references

PYTHON = """
class Color(Enum):
    RED = 1
    @property
    def size(self): ...

LIMIT = 3
# RED size LIMIT Color
text = "RED size LIMIT Color"
print(Color.RED, thing.size, LIMIT + 1, x[LIMIT:LIMIT])
if LIMIT > 2 and not Color.RED: thing.size = LIMIT
f"{LIMIT} and {Color.RED}"
for one in range(LIMIT): one.size += one[Color.RED]
call(size=Color.RED, **{LIMIT: Color})
""".lstrip()
TYPESCRIPT = """
enum Color { RED = 1 }
interface Thing { size: number }
export const LIMIT = 3
// RED size LIMIT Color
const text = "RED size LIMIT Color"
use(Color.RED, thing.size, LIMIT + 1, x[LIMIT])
if (LIMIT > 2 && !Color.RED) thing.size = LIMIT
`${LIMIT} and ${Color.RED}`
let { size } = thing, o = { size: LIMIT, [Color.RED]: 1 }
type T = Color | Thing['size']; export default Color.RED
""".lstrip()
GO = """
package p

type Thing struct { size int }
const LIMIT = 3
var RED = 1
type Color int

// RED size LIMIT Color
func f(t Thing) int {
	s := "RED size LIMIT Color"
	x := Thing{size: LIMIT}
	if LIMIT > 2 && x.size == RED { x.size = p.RED }
	return RED + x.size + t.size + int(Color(1)) + y[LIMIT]
}
""".lstrip()
RUST = """
enum Color { RED }
struct Thing { size: u8 }
const LIMIT: u8 = 3;
// RED size LIMIT Color
fn f(t: Thing) -> u8 {
    let s = "RED size LIMIT Color";
    let x = Thing { size: LIMIT };
    match c { Color::RED => t.size, _ => x.size + LIMIT }
}
fn g() { assert_eq!(LIMIT, x.size, "{}", Color::RED); }
""".lstrip()
JAVA = """
class Main {
  enum Color { RED }
  static final int LIMIT = 3;
  int size;
  // RED size LIMIT Color
  String s = "RED size LIMIT Color";
  int f(Main t) { return LIMIT + t.size + this.size + use(Color.RED, LIMIT); }
  void g() { size = LIMIT; switch (c) { case RED: t.size++; } }
}
""".lstrip()


def lines_of(tree: IndexedTree, name: str) -> list[int]:
    found = find_references(tree.files(), ReferenceQuery(name=name)).uses
    assert all(one.text[0] for one in found)
    return [one.line for one in found]


@pytest.mark.parametrize(
    ("path", "source", "expected"),
    [
        (
            "a.py",
            PYTHON,
            {
                "RED": [9, 10, 11, 12, 13],
                "size": [9, 10, 12, 13],
                "LIMIT": [9, 9, 9, 10, 10, 11, 12, 13],
                "Color": [9, 10, 11, 12, 13, 13],
            },
        ),
        (
            "a.ts",
            TYPESCRIPT,
            {
                "RED": [6, 7, 8, 9, 10],
                "size": [6, 7, 9, 9],
                "LIMIT": [6, 6, 7, 7, 8, 9],
                "Color": [6, 7, 8, 9, 10, 10],
            },
        ),
        (
            "a.go",
            GO,
            {
                "RED": [12, 12, 13],
                "size": [11, 12, 12, 13, 13],
                "LIMIT": [11, 12, 13],
                "Color": [13],
            },
        ),
        (
            "a.rs",
            RUST,
            {"RED": [8, 10], "size": [7, 8, 8, 10], "LIMIT": [7, 8, 10], "Color": [8, 10]},
        ),
        (
            "Main.java",
            JAVA,
            {"RED": [7, 8], "size": [7, 7, 8, 8], "LIMIT": [7, 7, 8], "Color": [7]},
        ),
    ],
)
def test_every_identifier_is_a_use(
    tree: IndexedTree, path: str, source: str, expected: dict[str, list[int]]
) -> None:
    tree.write({path: source})
    tree.index()
    assert {name: lines_of(tree, name) for name in expected} == expected


def test_a_name_is_found_in_every_file_that_mentions_it(tree: IndexedTree) -> None:
    tree.write(
        {
            "lib.py": "class Color:\n    red = 1\n",
            "user.py": "from lib import Color\nprint(Color.red)\n",
            "other.py": "def f(thing):\n    return thing.red\n",
        }
    )
    tree.index()
    found = find_references(tree.files(), ReferenceQuery(name="red")).uses
    assert [(one.path, one.line, one.kind) for one in found] == [
        ("other.py", 2, "read"),
        ("user.py", 2, "read"),
    ]
    tree.write({"new.py": "thing.red = 2\n"})
    found = find_references(tree.files(), ReferenceQuery(name="red"), changed=["new.py"]).uses
    assert {one.path for one in found} == {"new.py", "other.py", "user.py"}
