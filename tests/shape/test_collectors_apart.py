"""Nothing outside `collectors/` knows a collector: no literal, template, catalogue or style sheet has its name."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import tsuzuki
from tsuzuki.wiring.collectors import collector_records

SOURCE = Path(tsuzuki.__file__).parent
NAMES = sorted(collector_records().usable)
LITERAL = re.compile(rf"(^|.*[/. ])({'|'.join(NAMES)})([/.:].*)?", re.DOTALL)
FILE_NAME = re.compile(
    rf"(^|.*[^a-z])({'|'.join(name.rstrip('s') for name in NAMES)})", re.IGNORECASE
)


def outside(*suffixes: str) -> list[Path]:
    return [
        path
        for path in sorted(SOURCE.rglob("*"))
        if path.suffix in suffixes
        and {"collectors", "versions"}.isdisjoint(path.relative_to(SOURCE).parts)
    ]


def literals(path: Path) -> Iterator[tuple[int, str]]:
    """String constants that are not sentences: names, paths and import strings."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Constant(value=str(text)) if " " not in text.strip():
                yield node.lineno, text.strip()


def test_the_names_are_found_where_they_are() -> None:
    assert NAMES == ["books", "codeindex", "commits", "feeds"]
    for text in ("books", "/commits/{id}", "tsuzuki.collectors.feeds:X", "codeindex.lsp"):
        assert LITERAL.fullmatch(text)
    for text in ("handbooks", "commits_by_itself", "feedback"):
        assert not LITERAL.fullmatch(text)


def test_no_literal_is_the_name_of_a_collector() -> None:
    found = [
        f"{path.relative_to(SOURCE)}:{line} {text}"
        for path in outside(".py")
        for line, text in literals(path)
        if LITERAL.fullmatch(text)
    ]
    assert found == []


def test_no_file_has_the_name_of_a_collector() -> None:
    files = outside(".py", ".html", ".po", ".css", ".js")
    assert [str(path) for path in files if FILE_NAME.match(path.stem)] == []


def test_no_template_or_style_sheet_names_a_collector() -> None:
    name = re.compile(rf"[\"'/]({'|'.join(NAMES)})[\"'/.]")
    found = [
        f"{path.relative_to(SOURCE)}: {match[0]}"
        for path in outside(".html", ".css", ".js")
        if (match := name.search(path.read_text(encoding="utf-8")))
    ]
    assert found == []
