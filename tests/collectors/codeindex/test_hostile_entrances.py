"""A stranger's tree starts no command, whichever way the code index is asked about it: command line, HTTP, agents."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.waiting import wait_until
from support.web_client import served_application
from tsuzuki.cli import run_cli
from tsuzuki.collectors.codeindex.index_file import FOLDER_VARIABLE
from tsuzuki.collectors.codeindex.tools.definitions import TOOLS
from tsuzuki.mcp.answer import ToolAnswer
from tsuzuki.mcp.calls import answer_call
from tsuzuki.mcp.tool import ServerState, ToolProgress

from .hostile_trees import MARK, nested


@pytest.fixture
def mark(tree: Path, tmp_path: Path) -> Iterator[Path]:
    """The file that the tree's commands would leave. It has a hostile repository inside a hostile one."""
    mark = tmp_path / MARK
    nested(tree, mark)
    yield mark
    assert not mark.exists()


@pytest.mark.usefixtures("mark")
def test_commands_start_nothing_of_a_tree(
    tree: Path, index_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    environ = {FOLDER_VARIABLE: str(index_folder)}
    for words in (
        ("index", "build"),
        ("index", "search", "needle", "--in", "text"),
        ("index", "read", "vendored/main.py"),
        ("index", "references", "inner"),
        ("index", "status"),
    ):
        assert run_cli(words, environ=environ, cwd=tree) == 0, capsys.readouterr().err
    assert "inner" in capsys.readouterr().out


@pytest.mark.usefixtures("mark")
def test_requests_start_nothing_of_a_tree(
    tree: Path, index_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "tsuzuki.yaml").write_text(
        f"jobs: {{code: {{type: codeindex, roots: ['{tree}']}}}}\n", encoding="utf-8"
    )
    with served_application(workspace) as served:
        monkeypatch.setenv(FOLDER_VARIABLE, str(index_folder))
        client = served.client
        place = client.post("code/builds", {"tree": str(tree)}).headers["location"]
        wait_until(lambda: client.get(place).json["status"] != "running", "the build has ended")
        assert client.get(place).json["status"] == "completed"
        assert client.get("code/search?text=needle&where=text").json["items"]
        assert client.get("code/read?name=vendored/main.py").json["lines"]
        assert client.get("code/references?name=inner").status == 200


@pytest.mark.usefixtures("mark")
def test_agents_start_nothing_of_a_tree(tree: Path, index_folder: Path) -> None:
    state = ServerState(environ={FOLDER_VARIABLE: str(index_folder)}, cwd=tree)

    def ask(name: str, /, **arguments: Any) -> ToolAnswer:
        return answer_call(TOOLS.tools, name, arguments, state=state, progress=ToolProgress())

    try:
        assert not ask("code_index_build").is_error
        assert not ask("code_search", query="needle").is_error
        assert not ask("code_read", names=["vendored/main.py"]).is_error
        assert not ask("code_references", name="inner").is_error
    finally:
        state.close()
