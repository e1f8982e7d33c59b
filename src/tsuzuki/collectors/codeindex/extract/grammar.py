"""A language's grammar and compiled query, loaded when the first file of the language comes.

Both are shared by threads. A parser is not: it is made for each parse, because a parse that reads in parts lets other
threads run.
"""

from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import NamedTuple

import tree_sitter

from tsuzuki.collectors.codeindex.extract.languages import LANGUAGES
from tsuzuki.collectors.codeindex.extract.symbols import ExtractionFailed
from tsuzuki.model.clock import Clock

CHUNK_BYTES = 4_096
"""Between two of them the deadline is checked; the recovery from errors can take long for each."""

UNCHECKED_BYTES_MAX = 16_384


class Grammar(NamedTuple):
    language: tree_sitter.Language
    query: tree_sitter.Query


@cache
def grammar_of(name: str) -> Grammar:
    language = LANGUAGES[name]
    grammar = tree_sitter.Language(getattr(import_module(language.module), language.function)())
    folder = files(__package__) / "tags"
    source = "\n".join(
        (folder / f"{tags}.scm").read_text("utf-8") for tags in language.tags or (name,)
    )
    return Grammar(grammar, tree_sitter.Query(grammar, source))


def parse(
    language: tree_sitter.Language, text: bytes, *, seconds_max: float, clock: Clock
) -> tree_sitter.Tree:
    """The tree, or a failure after `seconds_max`.

    The deadline is checked where the parser reads: after it, the text ends. The parser's own progress callback is not
    used: it ends the process in tree-sitter 0.26.
    """
    parser = tree_sitter.Parser(language)
    if len(text) <= UNCHECKED_BYTES_MAX:
        return parser.parse(text)
    deadline = clock.monotonic() + seconds_max
    late = False

    def read(offset: int, _: tree_sitter.Point) -> bytes:
        nonlocal late
        late = late or clock.monotonic() > deadline
        return b"" if late else text[offset : offset + CHUNK_BYTES]

    tree = parser.parse(read)
    if late:
        raise ExtractionFailed("too slow", f"not parsed within {seconds_max:g} seconds")
    return tree
