"""`code_index_build` of some paths only, and of files that did not change."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.mcp_session import FOLDER_VARIABLE, make_tree
from tsuzuki.collectors.codeindex.tools.definitions import TOOLS
from tsuzuki.mcp.answer import ToolAnswer
from tsuzuki.mcp.calls import answer_call
from tsuzuki.mcp.tool import ServerState, ToolProgress

Build = Callable[..., ToolAnswer]
FILES = {f"{folder}/{name}.py": "def first(): ...\n" for folder in "ab" for name in ("one", "two")}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_tree(tmp_path / "tree", FILES)


@pytest.fixture
def build(root: Path, tmp_path: Path) -> Iterator[Build]:
    """Build once, and then as asked, to the end."""
    state = ServerState(environ={FOLDER_VARIABLE: str(tmp_path / "indexes")}, cwd=root)

    def build(**arguments: Any) -> ToolAnswer:
        told = {"wait_seconds": 30, **arguments}
        return answer_call(
            TOOLS.tools, "code_index_build", told, state=state, progress=ToolProgress()
        )

    assert build().structured["status"] == "completed"
    yield build
    state.close()


def updated(answer: ToolAnswer) -> int:
    assert answer.structured["status"] == "completed", answer.text
    result: dict[str, int] = answer.structured["result"]
    return result["updatedFiles"]


def test_only_the_named_paths_are_brought_up_to_date(root: Path, build: Build) -> None:
    for path in FILES:
        (root / path).write_text("def second(): ...  # longer\n")
    assert updated(build(paths=["a/one.py"])) == 1
    assert updated(build(paths=["a", str(root / "b" / "two.py")])) == 2
    assert updated(build()) == 1


def test_force_parses_what_did_not_change(build: Build) -> None:
    assert updated(build()) == 0
    assert updated(build(force=True)) == 4
    assert updated(build(force=True, paths=["b"])) == 2


def test_a_named_file_that_is_gone_is_removed(root: Path, build: Build) -> None:
    (root / "a" / "one.py").unlink()
    answer = build(paths=["a/one.py"])
    assert answer.structured["result"]["removedFiles"] == 1


@pytest.mark.parametrize("path", ["../elsewhere.py", "/etc"])
def test_a_path_outside_the_tree_is_refused(path: str, build: Build) -> None:
    answer = build(paths=[path])
    assert answer.is_error
    assert "path_outside" in answer.text
    assert repr(path) in answer.text
