"""Nothing outside `collectors/` knows a collector: neither code nor template, catalogue, style sheet or script."""

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


def test_no_template_catalogue_style_sheet_or_script_has_the_word() -> None:
    word = re.compile(rf"\b({'|'.join(NAMES)})\b", re.IGNORECASE)
    files = outside(".html", ".po", ".css", ".js")
    assert {path.suffix for path in files} == {".html", ".po", ".css", ".js"}
    found = [
        f"{path.relative_to(SOURCE)}: {match[0]}"
        for path in files
        if (match := word.search(path.read_text(encoding="utf-8")))
    ]
    assert found == []


def test_no_sentence_marks_a_collector_as_code() -> None:
    """In a docstring or a message; "commits" is also a word of English, and is not marked then."""
    marked = re.compile(rf"[`\"'/]({'|'.join(NAMES)})[`\"'/:.]")
    found = [
        f"{path.relative_to(SOURCE)}:{node.lineno} {match[0]}"
        for path in outside(".py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and (match := marked.search(node.value))
    ]
    assert found == []


def test_no_function_class_or_variable_is_named_after_a_collector() -> None:
    names = [name for name in NAMES if name != "commits"]  # what a transaction does
    part = re.compile(rf"(^|_)({'|'.join(names)})(_|$)")
    found = [
        f"{path.relative_to(SOURCE)}:{node.lineno} {name}"
        for path in outside(".py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if (name := identifier(node)) and part.search(name)
    ]
    assert found == []


def identifier(node: ast.AST) -> str | None:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return name
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
            return name
    return None
