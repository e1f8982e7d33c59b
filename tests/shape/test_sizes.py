"""Small enough to see whole: the sizes of files and functions."""

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "tsuzuki"
FILE_LINES_MAX = 500
"""Roomy on purpose: a limit that a file touches makes the next change split it where it should not be split."""

FUNCTION_LINES_MAX = 60
FUNCTION_LINES_P95 = 25


def modules() -> list[Path]:
    """Without migrations, which never change once they were released."""
    return [path for path in sorted(SOURCE.rglob("*.py")) if "versions" not in path.parts]


def functions(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            yield f"{path.relative_to(SOURCE)}:{node.lineno} {node.name}", lines


def test_no_file_is_too_long() -> None:
    lengths = {
        str(path.relative_to(SOURCE)): len(path.read_text(encoding="utf-8").splitlines())
        for path in modules()
    }
    assert {name: lines for name, lines in lengths.items() if lines > FILE_LINES_MAX} == {}


def test_no_function_is_too_long_and_most_are_short() -> None:
    lengths = dict(found for path in modules() for found in functions(path))
    assert {name: lines for name, lines in lengths.items() if lines > FUNCTION_LINES_MAX} == {}
    ordered = sorted(lengths.values())
    assert ordered[int(len(ordered) * 0.95)] <= FUNCTION_LINES_P95
