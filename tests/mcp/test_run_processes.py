"""A run outlives the server process that started it, and another one answers for it as a task."""

from pathlib import Path
from typing import Any

import pytest

from support.mcp_runs import run_workspace, sources_of
from support.mcp_server_process import ServerProcess
from support.waiting import wait_until
from tsuzuki.mcp.tasks import IDENTIFIER

pytestmark = pytest.mark.slow
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"extensions": {IDENTIFIER: {}}},
}


def server_on(workspace: Path) -> ServerProcess:
    return ServerProcess(workspace, workspace / "indexes", "--tools", "runs")


def test_a_task_of_a_killed_server_is_answered_by_the_next(tmp_path: Path) -> None:
    with run_workspace(sources_of(tmp_path), engine=False) as application:
        with server_on(tmp_path) as first:
            arguments = {"job": "print"}
            params = {"name": "run_start", "arguments": arguments, "_meta": META}
            task = first.request("tools/call", params)
            first.process.kill()
        application.local_engine.start()
        with server_on(tmp_path) as second:

            def now() -> dict[str, Any]:
                return second.request("tasks/get", {"taskId": task["taskId"], "_meta": META})

            wait_until(lambda: now()["status"] != "working", "the task has ended")
            assert now()["status"] == "completed"
            assert not now()["result"]["isError"]
