"""A language's grammar and compiled query, loaded when the first file of the language comes.

Both are shared by threads. A parser is not: it is made for each parse, because a parse that reads in parts lets other
threads run.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import tree_sitter

from tsuzuki.collectors.codeindex.extract.symbols import ExtractionFailed
from tsuzuki.collectors.codeindex.languages import LANGUAGES
from tsuzuki.model.clock import Clock

_TAGS = Path(__file__).with_name("tags")
CHUNK_BYTES = 4_096
"""Between two of them the deadline is checked; the recovery from errors can take long for each."""

UNCHECKED_BYTES_MAX = 131_072
"""Up to here a text is parsed in one piece, without a deadline: tree-sitter 0.26 never frees what it was given to read
with, so a parse in parts costs the size of its text until the process ends. That is kept to large files."""


class Grammar(NamedTuple):
    language: tree_sitter.Language
    query: tree_sitter.Query


@cache
def grammar_of(name: str) -> Grammar:
    language = LANGUAGES[name]
    grammar = tree_sitter.Language(getattr(import_module(language.module), language.function)())
    source = "\n".join(
        (_TAGS / f"{tags}.scm").read_text("utf-8") for tags in language.tags or (name,)
    )
    return Grammar(grammar, tree_sitter.Query(grammar, source))


class _Reader:
    """Hands out the text in parts, and checks the deadline with each until the parse has ended."""

    def __init__(self, text: bytes, seconds_max: float, clock: Clock) -> None:
        self._text = text
        self._seconds_max = seconds_max
        self._clock = clock
        self._deadline = clock.monotonic() + seconds_max

    def __call__(self, offset: int, _: tree_sitter.Point) -> bytes:
        if self._clock.monotonic() > self._deadline:
            raise ExtractionFailed("too slow", f"not parsed within {self._seconds_max:g} seconds")
        return self._text[offset : offset + CHUNK_BYTES]

    def parsed(self) -> None:
        """The predicates of a query read too; nothing may be raised there."""
        self._deadline = float("inf")

    def close(self) -> None:
        self._text = b""


@contextmanager
def parsed(
    language: tree_sitter.Language, text: bytes, *, seconds_max: float, clock: Clock
) -> Iterator[tree_sitter.Tree]:
    """The tree, for as long as it is queried, or a failure after `seconds_max`.

    The deadline is checked where the parser reads. Its own progress callback is not used: it ends the process in
    tree-sitter 0.26.
    """
    parser = tree_sitter.Parser(language)
    if len(text) <= UNCHECKED_BYTES_MAX:
        yield parser.parse(text)
        return
    reader = _Reader(text, seconds_max, clock)
    try:
        tree = parser.parse(reader)
        reader.parsed()
        yield tree
    finally:
        reader.close()
