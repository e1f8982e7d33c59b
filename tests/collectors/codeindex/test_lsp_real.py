"""Real language servers: basedpyright, jedi-language-server and clangd."""

import importlib.util
import shutil
import sys
from pathlib import Path

import pytest

from collectors.codeindex.builds.test_builder import rows
from tsuzuki.collectors.codeindex.index_file import FOLDER_VARIABLE
from tsuzuki.collectors.codeindex.lsp.server_process import LspLimits
from tsuzuki.collectors.codeindex.service.builds import Builds

BIN = Path(sys.executable).parent
PYTHON = '''"""Shop."""
import os
from dataclasses import dataclass

LIMIT = 3


@dataclass
class Cart:
    size: int = 0
    名前 = "😀"; after = 1

    def add(self, item: int) -> int:
        """Add one."""
        total = item
        def inner() -> None: ...
        return total


def pay() -> None: ...
'''
CPP = """#define MAX 3
namespace shop {
class Cart { public: Cart(); int add(int a); /* 😀 */ int n; };
int Cart::add(int a) { int local = a; return local; }
}
"""


def program(name: str) -> str:
    found = shutil.which(name, path=str(BIN))
    assert found is not None
    return found


def found(index_folder: Path, root: Path) -> set[tuple[object, ...]]:
    sql = "SELECT name, kind, container, col FROM symbols"
    return {*rows(index_folder, root, sql)}


def build(builds: Builds, root: Path, **lsp: tuple[str, ...]) -> None:
    started = builds.start(root, lsp=lsp)
    job = builds.jobs.wait(started.id, 100)
    assert job is not None
    assert (job.status, job.error) == ("completed", None)
    assert builds.status(root).problems == ()


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", [("basedpyright-langserver", "--stdio"), ("jedi-language-server",)]
)
def test_servers_of_python(
    builds: Builds, tmp_path: Path, index_folder: Path, words: tuple[str, ...]
) -> None:
    root = tmp_path / "shop"
    root.mkdir()
    (root / "cart.py").write_text(PYTHON, encoding="utf-8")
    build(builds, root, python=(program(words[0]), *words[1:]))
    names = {row[0]: row for row in found(index_folder, root)}
    assert names["after"] == ("after", "field", "Cart", 14)
    for name, kind, container in (
        ("LIMIT", "constant", ""),
        ("Cart", "class", ""),
        ("add", "method", "Cart"),
        ("inner", "function", "Cart/add"),
        ("pay", "function", ""),
    ):
        assert names[name][:3] == (name, kind, container)
    assert not {"os", "dataclass", "total", "item", "self"} & {*names}
    signatures = rows(index_folder, root, "SELECT signature, doc FROM symbols WHERE name = 'add'")
    assert signatures == [("def add(self, item: int) -> int", "Add one.")]


@pytest.mark.slow
def test_clangd(builds: Builds, tmp_path: Path, index_folder: Path) -> None:
    root = tmp_path / "shop"
    root.mkdir()
    (root / "cart.cpp").write_text(CPP, encoding="utf-8")
    build(builds, root, cpp=(program("clangd"), "--background-index=false"))
    assert found(index_folder, root) == {
        ("MAX", "macro", "", 8),
        ("shop", "namespace", "", 10),
        ("Cart", "class", "shop", 6),
        ("Cart", "method", "shop/Cart", 21),
        ("add", "method", "shop/Cart", 33),
        ("n", "field", "shop/Cart", 57),
        ("add", "method", "shop/Cart", 10),
    }


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_basedpyright_knows_every_function_and_class_that_the_parser_finds(
    tmp_path: Path, index_folder: Path
) -> None:
    """On a large real package. Where it knows less, Python never runs the code or a name is defined twice."""
    spec = importlib.util.find_spec("sqlalchemy")
    assert spec is not None
    assert spec.origin is not None
    root = tmp_path / "sqlalchemy"
    shutil.copytree(Path(spec.origin).parent, root, ignore=shutil.ignore_patterns("*.so", "*.pyc"))
    sql = (
        "SELECT path, name, container FROM symbols JOIN files ON files.id = file_id"
        " WHERE kind IN ('function', 'method', 'class')"
    )
    builds = Builds(
        environ={FOLDER_VARIABLE: str(index_folder)},
        lsp_limits=LspLimits(request_seconds_max=300.0),
    )
    build(builds, root)
    parser = {*rows(index_folder, root, sql)}
    started = builds.start(root, lsp={"python": (program("basedpyright-langserver"), "--stdio")})
    job = builds.jobs.wait(started.id, 1700)
    assert job is not None
    assert job.status == "completed"
    assert builds.status(root).problems == ()
    server = {*rows(index_folder, root, sql)}
    assert len(parser) > 5_000
    assert len(parser - server) / len(parser) < 0.02
    assert len(server - parser) / len(parser) < 0.02
