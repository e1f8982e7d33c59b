"""The fast path: the tree is the one that ruamel.yaml gives for every text; plain files do without it."""

import random
import subprocess
import sys
import textwrap

import pytest
from hypothesis import given, settings

from config.random_config_files import File, files
from tsuzuki.config.yaml import fast_path, parser
from tsuzuki.config.yaml.nodes import Node
from tsuzuki.config.yaml.source import Source, decode_source
from tsuzuki.model.errors import ConfigurationError

PLAIN_FILE = """\
# the jobs of one machine
version: 1
timezone: Asia/Tokyo   # where we are

jobs:
  nightly:
    command: [pg_dump, --file, "out \\"1\\".dump"]
    schedule: {daily_at: 02:30, timezone: UTC}
    tags:
    - db
    - 'it''s slow'
    environment:
      PAGER: ~

  # below a comment
  hourly:
    command: curl http://example.org/#top
    enabled: false
    arguments:
"""

VALUES = """\
a|x y|a:b|09:00|-x|--f|a#b|-1|1.5|007|~|null|true|$HOME|${A}|a,b|*/5 * * * *|http://x:80/#f|a b  c|é 四|a&b|a::b
"q"|"q\\n\\""|"\\x41"|'s'|'it''s'|""|''|[a, b]|[]|{}|{a: 1}|{a: 1, b: x y}
[a:b, 1]|[-1, --x]|[ "a", 'b' ]|{ a: 1 ,b: '2' }
# c|a: b|a #b|- a|- a: b|- [a]|? a|: a|[a|{a: 1, a: 2}|[a: b]|[a, ]|"q|'s|'a' b|&x y|*x|!t z|<<: *x|@a|a:|{a: }|[a -b]\
""".replace("\n", "|").split("|")
SCALARS = ("|-", ">", "|+", "|2")


def both(text: str) -> tuple[Node | str, Node | str]:
    """What the fast path and ruamel.yaml make of a text: a tree, or what is wrong."""
    source = decode_source(text.encode(), file="tsuzuki.yaml")
    return _outcome(fast_path.parse_tree, source), _outcome(parser.parse_tree, source)


def _outcome(parse: object, source: Source) -> Node | str:
    assert callable(parse)
    try:
        tree: Node = parse(source)
    except ConfigurationError as problem:
        return str(problem)
    return tree


def random_text(draw: random.Random) -> str:
    lines = list(_entries(draw, indent=0, depth=0))
    if draw.random() < 0.2:
        lines[draw.randrange(len(lines))] = " " * draw.choice([0, 2, 3]) + draw.choice(VALUES)
    return "\n".join(lines) + draw.choice(["", "\n", "\n\n"])


def _entries(draw: random.Random, *, indent: int, depth: int) -> list[str]:
    lines: list[str] = []
    space = " " * indent
    for key in draw.sample("abcdefgh", draw.randint(1, 4)):
        kind = draw.choice(
            ["value"] * 4 + ["mapping"] * (3 - depth) + ["list", "scalar", "wrapped"]
        )
        if draw.random() < 0.1:
            lines.append(draw.choice(["", "# c", f"{space}# c", "   # c"]))
        if kind == "value":
            lines.append(f"{space}{key}: {draw.choice(VALUES)}{draw.choice(['', '', '  # c'])}")
        elif kind == "mapping":
            lines.append(f"{space}{key}:{draw.choice(['', ' ', '  # c'])}")
            lines += _entries(draw, indent=indent + draw.choice([1, 2, 4]), depth=depth + 1)
        elif kind == "list":
            dash = " " * (indent + draw.choice([0, 2])) + "- "
            lines += [f"{space}{key}:", *(dash + draw.choice(VALUES) for _ in range(2))]
        elif kind == "scalar":
            lines += [
                f"{space}{key}: {draw.choice(SCALARS)}",
                f"{space}  {draw.choice(VALUES)}",
                "",
            ]
        else:
            lines += [f"{space}{key}: [a,", f"{space}  b", f"{space}]"]
    return lines


@pytest.mark.parametrize("first", range(0, 800, 400))
def test_the_tree_of_any_text_is_the_one_that_ruamel_gives(first: int) -> None:
    taken = 0
    for seed in range(first, first + 400):
        text = random_text(random.Random(seed))
        fast, full = both(text)
        assert fast == full, f"seed {seed}: {text!r}"
        taken += _is_fast(text)
    assert taken > 30, "the texts are so odd that nothing is tried"


@settings(max_examples=60)
@given(files())
def test_the_tree_of_a_file_of_jobs_is_the_one_that_ruamel_gives(file: File) -> None:
    fast, full = both(file.content.decode())
    assert fast == full


def test_a_plain_file_is_parsed_without_ruamel() -> None:
    """It alone takes longer to load than such a file takes to parse."""
    program = textwrap.dedent(
        """
        import sys
        from tsuzuki.config.yaml.document import parse_document
        from tsuzuki.config.yaml.source import Source

        parse_document(Source(file="f", text=sys.argv[1])).data
        print(any(name.startswith("ruamel") for name in sys.modules))
        """
    )
    answer = subprocess.run(
        [sys.executable, "-c", program, PLAIN_FILE], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "False"
    fast, full = both(PLAIN_FILE)
    assert fast == full


def test_only_the_entry_that_is_not_plain_is_parsed_by_ruamel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    excerpts: list[str] = []
    parse_excerpt = parser.parse_excerpt

    def counting(source: Source, start: int, end: int) -> Node | None:
        excerpts.append(source.text[start:end])
        return parse_excerpt(source, start, end)

    monkeypatch.setattr(parser, "parse_excerpt", counting)
    text = PLAIN_FILE + "    description: |\n      one\n      two\n  last:\n    command: ls\n"
    fast, full = both(text)
    assert fast == full
    assert excerpts == ["    description: |\n      one\n      two\n"]


def test_many_entries_that_are_not_plain_are_parsed_with_the_whole_file() -> None:
    entries = "".join(f"k{n}: |\n  x\n" for n in range(fast_path.EXCERPTS_MAX + 1))
    assert not _is_fast(entries)
    assert _is_fast(entries.split("\n", 2)[2])


def _is_fast(text: str) -> bool:
    """Whether the file is not parsed as a whole by ruamel.yaml."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parser, "parse_tree", lambda _source: None)
        return fast_path.parse_tree(Source(file="f", text=text)) is not None
