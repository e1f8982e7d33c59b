"""The languages: which file is which, and where its grammar is.

A file is known by its name, then by its suffix, then by its `#!` line.
"""

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

_SHEBANG = re.compile(rb"#!\s*\S*?([^/\s]+)(?:[ \t]+(?:-\S+[ \t]+)*([^/\s]\S*))?")
_VERSION = re.compile(r"[\d.]+$")
_CPLUSPLUS = re.compile(
    rb"^\s*(?:class|namespace|template|using|public:|private:|protected:)\b|\b\w+::\w", re.MULTILINE
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Language:
    name: str
    module: str
    """The wheel's module with the grammar."""
    suffixes: tuple[str, ...]
    function: str = "language"
    names: tuple[str, ...] = ()
    interpreters: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    """The files of the tags query, joined; the language's own name if empty."""
    comment: str = ""
    """How a comment before a definition looks: `slash`, `hash`, `dash` or none."""


_TABLE = (
    Language(
        name="python",
        module="tree_sitter_python",
        suffixes=(".py", ".pyi", ".pyw"),
        names=("SConstruct", "SConscript", "wscript"),
        interpreters=("python", "pypy"),
        comment="hash",
    ),
)

LANGUAGES: dict[str, Language] = {language.name: language for language in _TABLE}
_BY_NAME = {name.lower(): language.name for language in _TABLE for name in language.names}
_BY_SUFFIX = {suffix: language.name for language in _TABLE for suffix in language.suffixes}
_BY_INTERPRETER = {name: language.name for language in _TABLE for name in language.interpreters}


def language_of(path: str, first_bytes: bytes) -> str | None:
    """The language of a file, or none. `first_bytes` are enough of its start to tell C from C++."""
    name = PurePosixPath(path).name.lower()
    found = _BY_NAME.get(name) or _BY_SUFFIX.get(PurePosixPath(name).suffix)
    if found == "c" and name.endswith(".h") and _CPLUSPLUS.search(first_bytes):
        return "cpp"
    return found or _by_shebang(first_bytes)


def _by_shebang(first_bytes: bytes) -> str | None:
    found = _SHEBANG.match(first_bytes.partition(b"\n")[0])
    if found is None:
        return None
    program, argument = (
        found[1].decode("utf-8", "replace"),
        (found[2] or b"").decode("utf-8", "replace"),
    )
    if program == "env":
        program = PurePosixPath(argument).name
    return _BY_INTERPRETER.get(_VERSION.sub("", program))
