"""Progress notes for a client that asks for them: often enough, each higher than the one before."""

import asyncio
import threading
from pathlib import Path

import pytest
from mcp.client.client import Client

from support.mcp_session import FOLDER_VARIABLE, make_tree
from tsuzuki.collectors.codeindex.builds.builder import Builder
from tsuzuki.collectors.codeindex.builds.job import BuildJob
from tsuzuki.mcp import server as server_module
from tsuzuki.mcp.presets import presets
from tsuzuki.mcp.server import PROGRESS_SECONDS, ToolServer
from tsuzuki.mcp.tool import ServerState

NOTES_WANTED = 4


def test_a_client_hears_of_a_call_at_least_every_five_seconds() -> None:
    assert PROGRESS_SECONDS <= 5


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_progress_only_rises(mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "PROGRESS_SECONDS", 0.02)
    heard_enough = threading.Event()
    complete = Builder._complete

    def complete_when_heard(self: Builder, gone: set[str], copied: set[str]) -> BuildJob:
        heard_enough.wait(120)
        return complete(self, gone, copied)

    monkeypatch.setattr(Builder, "_complete", complete_when_heard)
    root = make_tree(tmp_path / "tree")
    state = ServerState(environ={FOLDER_VARIABLE: str(tmp_path / "indexes")}, cwd=root)
    heard: list[float] = []

    async def hear(progress: float, _total: float | None, _message: str | None) -> None:
        heard.append(progress)
        if len(heard) >= NOTES_WANTED:
            heard_enough.set()

    async def call() -> object:
        async with Client(ToolServer(presets()["code"], state).server, mode=mode) as client:
            return await client.call_tool(
                "code_index_build", {"wait_seconds": 30}, progress_callback=hear
            )

    result = asyncio.run(call())
    state.close()
    assert " completed: 5 of 5 files" in str(result)
    assert len(heard) >= NOTES_WANTED
    assert heard == sorted({*heard})
