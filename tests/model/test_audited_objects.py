"""The list of audited types is what the code writes."""

import ast
from pathlib import Path

import tsuzuki
from tsuzuki.wiring.collectors import audited_types

SOURCE = Path(tsuzuki.__file__).parent


def test_every_object_type_that_is_written_is_listed() -> None:
    written = {
        keyword.value.value
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "object_type" and isinstance(keyword.value, ast.Constant)
    }
    assert written == set(audited_types())
