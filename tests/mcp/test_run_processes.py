"""A run outlives the server process that started it, and another one answers for it as a task."""

from pathlib import Path
from typing import Any

import pytest

from support.mcp_runs import run_workspace, sources_of
from support.mcp_server_process import ServerProcess
from support.waiting import wait_until
from tsuzuki.mcp.tasks import IDENTIFIER
from tsuzuki.services.runs import Request

WAIT_SECONDS = 30
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


def test_a_server_whose_client_leaves_while_it_waits_ends_at_once(tmp_path: Path) -> None:
    with run_workspace(sources_of(tmp_path), engine=False) as application:
        run_id = application.runs.submit(Request(job="print")).run_id
        with server_on(tmp_path) as server:
            server.shake_hands().call("run_get", run_id=run_id, wait_seconds=0)
            server.send_call("run_get", run_id=run_id, wait_seconds=WAIT_SECONDS)
            server.call("run_list")
            assert server.process.stdin
            server.process.stdin.close()
            server.process.wait(WAIT_SECONDS / 2)
