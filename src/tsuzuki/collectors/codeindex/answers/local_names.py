"""Whether a function binds a name itself, as a parameter or a local variable: then a use in it means that.

It looks at the text of the function. Where the text leaves a doubt, the name counts as bound: a use is then one by
name, never one of another definition.
"""

import re
from functools import lru_cache

from tsuzuki.collectors.codeindex.answers.freshness import FreshFile
from tsuzuki.collectors.codeindex.answers.symbol import Site, family_of
from tsuzuki.collectors.codeindex.queries.lookups import Symbol

FUNCTION_KINDS = frozenset({"function", "method"})
_QUOTED = r"'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\""
_STRINGS = re.compile(rf"'''.*?'''|\"\"\".*?\"\"\"|{_QUOTED}|#[^\n]*", re.DOTALL)
_STRINGS = re.compile(rf"{_QUOTED}|//[^\n]*|/\*.*?\*/", re.DOTALL)

_BRACES = (
    r"\b(?:const|let|var|val|auto|local|mut)\s+[^=;\n]*?\b{name}\b",
    r"(?:^|[\s,;(]){name}\s*(?:,\s*\w+\s*)*:=",
    r"\bfor\s*\(?[^{{;\n]*?\b{name}\b\s*(?:in|of|:)\s",
    r"\bcatch\s*\([^)]*\b{name}\s*\)",
    r"(?:^|[(,\s]){name}\s*=>",
    r"\([^()]*\b{name}\b[^()]*\)\s*=>",
)
_PARAMETER = r"[(,|]\s*(?:\*{{1,2}}|\.\.\.|&|mut\s+)*{name}\s*\??(?=[,:=)|])"
_TYPED_PARAMETER = r"[(,]\s*[\w<>\[\].:*&? ]+[\s*&]{name}\s*(?=[,=)\[])"
_TYPE_FIRST = frozenset({"c", "java", "csharp"})
"""Families in which a parameter is written after its type."""


def is_bound_in_function(file: FreshFile, site: Site, name: str, *, outside: str = "") -> bool:
    """Whether a function around the use binds the name. Functions that contain `outside`, the path of what contains
    the definition, are not looked at."""
    if not site.container:
        return False
    return any(
        _binds(family_of(site.language), text, name)
        for text in _functions_around(file, site, outside)
    )


def _functions_around(file: FreshFile, site: Site, outside: str) -> list[str]:
    """The text of each function that the use is in, without those that the definition is in too."""
    around = [
        symbol
        for symbol in file.symbols
        if symbol.kind in FUNCTION_KINDS
        and symbol.line <= site.line <= symbol.end_line
        and (
            site.container == symbol.name_path or site.container.startswith(f"{symbol.name_path}/")
        )
        and not f"{outside}/".startswith(f"{symbol.name_path}/")
    ]
    return [_text_of(file, symbol) for symbol in around]


def _text_of(file: FreshFile, symbol: Symbol) -> str:
    lines = range(symbol.line, symbol.end_line + 1)
    return "\n".join(file.source.line(number) for number in lines)


@lru_cache(maxsize=512)
def _binds(family: str, text: str, name: str) -> bool:
    if name not in text:
        return False
    plain = _STRINGS.sub(lambda found: "\n" * found[0].count("\n") or "''", text)
    header = plain.partition("{")[0]
    if _has(_PARAMETER, header, name):
        return True
    if family in _TYPE_FIRST and _has(_TYPED_PARAMETER, header, name):
        return True
    return any(_has(pattern, plain, name) for pattern in _BRACES)


def _has(pattern: str, text: str, name: str) -> bool:
    return bool(re.search(pattern.format(name=re.escape(name)), text, re.MULTILINE))
