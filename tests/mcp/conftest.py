"""A server about a small tree: over stdio, and in this process."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.mcp_session import FOLDER_VARIABLE, Session, make_tree, stdio_session
from tsuzuki.collectors.codeindex.tools.definitions import TOOLS
from tsuzuki.mcp.answer import ToolAnswer
from tsuzuki.mcp.calls import answer_call
from tsuzuki.mcp.tool import ServerState, ToolProgress


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tree(tmp_path_factory.mktemp("tree"))


@pytest.fixture(scope="session")
def index_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("indexes")


@pytest.fixture(scope="session")
def session(tree: Path, index_folder: Path) -> Iterator[Session]:
    """One server on stdio for all tests. Its tree is not indexed when it starts."""
    opened = stdio_session(tree, index_folder)
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def state(tree: Path, index_folder: Path) -> Iterator[ServerState]:
    """The same without a process."""
    made = ServerState(environ={FOLDER_VARIABLE: str(index_folder)}, cwd=tree, root=str(tree))
    yield made
    made.close()


@pytest.fixture(scope="session")
def ask(state: ServerState) -> Callable[..., ToolAnswer]:
    """Call a tool in this process."""

    def call(name: str, /, **arguments: Any) -> ToolAnswer:
        return answer_call(TOOLS.tools, name, arguments, state=state, progress=ToolProgress())

    return call
