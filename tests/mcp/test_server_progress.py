"""Progress notes for a client that asks for them: often enough, each higher than the one before."""

import asyncio
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from mcp.client.client import Client

from support.mcp_session import FOLDER_VARIABLE, make_tree
from tsuzuki.collectors.codeindex.builds.builder import Builder
from tsuzuki.collectors.codeindex.builds.job import BuildJob
from tsuzuki.mcp import server as server_module
from tsuzuki.mcp.presets import presets
from tsuzuki.mcp.server import PROGRESS_SECONDS, ToolServer, tell_progress
from tsuzuki.mcp.tool import ServerState, ToolProgress

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


def test_a_note_has_count_total_and_words_of_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "PROGRESS_SECONDS", 0.001)
    progress, told = ToolProgress(), list[tuple[float, float | None, str]]()

    class Heard(Exception):
        pass

    async def report(count: float, total: float | None, words: str) -> None:
        told.append((count, total, words))
        if len(told) == 1:
            progress.report(3, 7, "3 of 7 files")
        elif len(told) == 2:
            progress.report(8, 7, "8 of 7 files")
        else:
            raise Heard

    session: Any = SimpleNamespace(report_progress=report)
    with pytest.raises(Heard):
        asyncio.run(tell_progress(session, progress))
    assert told == [(0.001, None, "0 s"), (3, 7, "3 of 7 files"), (8, None, "8 of 7 files")]
