"""The walks that ARCHITECTURE.md draws lead through files and functions that exist."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "tsuzuki"
STATIONS_MAX = 14
STATION = re.compile(r"^\d+\. `([\w/]+\.py): ([\w.]+)` — .+$", re.MULTILINE)


def stations(title: str) -> list[tuple[str, str]]:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    section = text.partition(f"## {title}\n")[2].partition("\n## ")[0]
    found = STATION.findall(section)
    assert len(found) == len(re.findall(r"^\d+\. ", section, flags=re.MULTILINE))
    return found


def defined(path: Path) -> set[str]:
    """Functions, and methods as Class.method."""
    names = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.ClassDef):
            names |= {
                f"{node.name}.{method.name}"
                for method in node.body
                if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef)
            }
    return names


@pytest.mark.parametrize(
    "title", ["The walk of a run", "The walk of a page", "The walk of an item"]
)
def test_every_station_exists(title: str) -> None:
    found = stations(title)
    assert 0 < len(found) <= STATIONS_MAX
    missing = [
        f"{file}: {function}"
        for file, function in found
        if not (SOURCE / file).exists() or function not in defined(SOURCE / file)
    ]
    assert missing == []
