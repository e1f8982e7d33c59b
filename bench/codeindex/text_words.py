"""Places of words in Rust and Java source outside comments and strings, found without a parser."""

import re
from collections.abc import Iterator
from pathlib import Path

from bench.codeindex.reference_client import Place

_BLOCK_COMMENT = r"/\*(?:[^*]|\*(?!/))*\*/"
_NESTED_COMMENT = rf"/\*(?:[^*/]|\*(?!/)|/(?!\*)|{_BLOCK_COMMENT})*\*/"
"""One comment within another is enough for code that was put into a comment."""

_LINE_COMMENT = r"//[^\n]*"
_STRING = r'"(?:\\.|[^"\\])*"'
LEXERS = {
    # What a macro calls `$name` is a name of its own.
    "rust": re.compile(
        r"(?:[bc]?r(?P<hashes>\#*)\".*?\"(?P=hashes)"
        rf"|{_LINE_COMMENT}|{_NESTED_COMMENT}|[bc]?{_STRING}"
        r"|b?'(?:\\u\{\w+\}|\\x\w\w|\\.|[^'\\])'|'\w+)"
        r"|\$\w+|(?:r\#)?(?P<word>[^\W\d]\w*)|\d\w*",
        re.DOTALL,
    ),
    "java": re.compile(
        rf'"""(?:\\.|[^\\])*?"""|{_LINE_COMMENT}|{_BLOCK_COMMENT}|{_STRING}'
        r"|'(?:\\u+\w{4}|\\[0-7]{1,3}|\\.|[^'\\])'"
        r"|(?P<word>(?:[^\W\d]|\$)[\w$]*)|\d\w*",
        re.DOTALL,
    ),
}
SUFFIXES = {"rust": ".rs", "java": ".java"}


def places_of_words(root: Path, language: str, names: frozenset[str]) -> dict[str, set[Place]]:
    """Places of each name in the files of the language."""
    found: dict[str, set[Place]] = {}
    for file in sorted(root.rglob(f"*{SUFFIXES[language]}")):
        path = file.relative_to(root).as_posix()
        for word, line, column in words(file.read_text("utf-8", "replace"), language):
            if word in names:
                found.setdefault(word, set()).add((path, line, column))
    return found


def words(text: str, language: str) -> Iterator[tuple[str, int, int]]:
    """Each word with its line, counted from 1, and its column."""
    line, at = 1, 0
    for match in LEXERS[language].finditer(text):
        if (word := match["word"]) is None:
            continue
        start = match.start("word")
        line += text.count("\n", at, start)
        at = start
        yield word, line, start - text.rfind("\n", 0, start) - 1
