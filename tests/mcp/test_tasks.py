"""Runs as tasks of the protocol, by the SDK's client: created, asked for, cancelled, answered by any server."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import pytest
from mcp.client import Client
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.shared.exceptions import MCPError
from mcp.types import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    CallToolResult,
    Request,
    Result,
)

from support.mcp_runs import AnyResult, RunServer, run_server, run_workspace, sources_of, text_of
from support.served_app import served
from support.waiting import wait_until
from tsuzuki.mcp.runs.run_tasks import RunTasks
from tsuzuki.mcp.serve import app_of
from tsuzuki.mcp.tasks import IDENTIFIER
from tsuzuki.model.access import Principal, Right, Role
from tsuzuki.model.errors import NotPermitted

WIRE_KEYS = {"taskId", "status", "createdAt", "lastUpdatedAt", "ttlMs", "pollIntervalMs"}


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return sources_of(tmp_path_factory.mktemp("tasks"))


@pytest.fixture(scope="module")
def server(sources: dict[str, Any]) -> Iterator[RunServer]:
    with run_workspace(sources), run_server(sources) as server:
        yield server


def started(server: RunServer, job: str, **arguments: Any) -> dict[str, Any]:
    wanted = {"job": job, "arguments": arguments}
    return server.ask("tools/call", name="run_start", arguments=wanted)


def ended(server: RunServer, task: dict[str, Any]) -> dict[str, Any]:
    wait_until(lambda: get(server, task)["status"] != "working", "the task has ended")
    return get(server, task)


def get(server: RunServer, task: dict[str, Any], **options: Any) -> dict[str, Any]:
    return server.ask("tasks/get", taskId=task["taskId"], **options)


def refused(server: RunServer, method: str, **params: Any) -> int:
    with pytest.raises(MCPError) as refusal:
        server.ask(method, **params)
    return refusal.value.code


def test_starting_a_run_creates_a_task_that_another_server_answers_for(
    database_url: str, tmp_path: Path
) -> None:
    sources = sources_of(tmp_path, database_url)
    with run_workspace(sources):
        with run_server(sources) as server:
            task = started(server, "print")
            assert task.keys() >= WIRE_KEYS
            assert (task["resultType"], task["ttlMs"]) == ("task", None)
            assert "result" not in task
        with run_server(sources) as other:
            done = ended(other, task)
            looked = other.call("run_get", run_id=int(task["taskId"]))
    assert (done["status"], done["resultType"]) == ("completed", "complete")
    assert done["result"]["content"][0]["text"] == text_of(looked)
    assert done["result"]["structuredContent"] == looked.structured_content
    assert not done["result"]["isError"]


def test_a_failed_run_is_a_completed_task_with_an_error_as_result(server: RunServer) -> None:
    done = ended(server, started(server, "failing_job"))
    assert done["status"] == "completed", "failed is for errors of the protocol"
    assert done["result"]["isError"]
    assert "it broke" in done["result"]["content"][0]["text"]


def test_a_cancelled_task_stays_so_and_may_be_cancelled_again(server: RunServer) -> None:
    task = started(server, "slow_compute", seconds=60)
    for _ in range(2):
        acknowledged = server.ask("tasks/cancel", taskId=task["taskId"])
        assert acknowledged.keys() == {"resultType", "_meta"}
        assert get(server, task)["status"] == "cancelled"


def test_a_finished_task_is_not_changed_by_a_cancel(server: RunServer) -> None:
    done = ended(server, started(server, "print"))
    server.ask("tasks/cancel", taskId=done["taskId"])
    assert get(server, done)["status"] == "completed"


def test_a_run_asks_for_no_input_so_responses_are_ignored(server: RunServer) -> None:
    task = started(server, "slow_compute", seconds=60)
    server.ask("tasks/update", taskId=task["taskId"], inputResponses={"other": {}})
    assert get(server, task)["status"] == "working"
    server.ask("tasks/cancel", taskId=task["taskId"])


def test_an_error_of_a_call_is_no_task(server: RunServer) -> None:
    answer = started(server, "unknown")
    assert answer["isError"]
    assert "taskId" not in answer


def test_other_tools_are_answered_at_once(server: RunServer) -> None:
    answer = server.ask("tools/call", name="run_list", arguments={})
    assert answer["resultType"] == "complete"


def test_the_time_that_a_task_is_kept_follows_the_setting(tmp_path: Path) -> None:
    sources = sources_of(tmp_path)
    with run_workspace(sources, engine=False) as application, run_server(sources) as server:
        task = started(server, "print")
        application.settings.set("run_retention_days", 2)
        assert get(server, task)["ttlMs"] == 2 * 86_400_000


def test_an_unknown_task_is_refused(server: RunServer) -> None:
    for method in ("tasks/get", "tasks/cancel", "tasks/update"):
        for task_id in ("999999", "x", "-1", "\u0661", "9" * 40, "1.5", ""):
            assert refused(server, method, taskId=task_id) == INVALID_PARAMS


def test_a_client_that_does_not_declare_tasks_gets_none(server: RunServer) -> None:
    wanted = {"job": "print"}
    answer = server.ask("tools/call", declared=False, name="run_start", arguments=wanted)
    assert answer["resultType"] == "complete"
    run_id = str(answer["structuredContent"]["run_id"])
    for method in ("tasks/get", "tasks/cancel", "tasks/update"):
        code = refused(server, method, declared=False, taskId=run_id)
        assert code == MISSING_REQUIRED_CLIENT_CAPABILITY


def test_an_older_client_has_no_such_methods(server: RunServer) -> None:
    assert refused(server, "tasks/get", mode="legacy", taskId="1") == METHOD_NOT_FOUND
    assert server.call("run_start", mode="legacy", job="print").structured_content


def test_without_a_database_the_error_says_so(tmp_path: Path) -> None:
    with run_server(sources_of(tmp_path)) as server, pytest.raises(MCPError) as refusal:
        server.ask("tasks/get", taskId="1")
    assert refusal.value.code == INTERNAL_ERROR
    assert refusal.value.message.startswith("no_workspace: ")
    assert "tsuzuki init" in refusal.value.data["hint"]


def test_the_server_announces_the_extension_with_runs_only(server: RunServer) -> None:
    async def ask(client: Client) -> Any:
        return client.server_capabilities.extensions

    assert server.with_client(ask) == {IDENTIFIER: {}}
    with run_server(sources_of(Path.cwd()), preset="code") as code:
        assert code.with_client(ask) is None


class CreatedTask(Result):
    result_type: Literal["task"] = "task"
    task_id: str


class Tasks(ClientExtension):
    """As a client would that follows tasks by itself."""

    identifier = IDENTIFIER

    def claims(self) -> list[ResultClaim[Any]]:
        return [ResultClaim(result_type="task", model=CreatedTask, resolve=self._resolve)]

    async def _resolve(self, created: CreatedTask, context: ClaimContext) -> CallToolResult:
        params = {"taskId": created.task_id}
        while True:
            request = Request[Any, str](method="tasks/get", params=params)
            answer = await context.session.send_request(request, AnyResult)
            task = answer.model_dump(by_alias=True)
            if task["status"] != "working":
                return CallToolResult.model_validate(task["result"])


def test_a_client_may_follow_a_task_to_its_result(server: RunServer) -> None:
    result = server.with_client(
        lambda client: client.call_tool("run_start", {"job": "print"}), extensions=[Tasks()]
    )
    assert text_of(result).startswith("run ")
    assert "SUCCEEDED" in text_of(result)


def test_over_http_the_header_names_the_task(server: RunServer) -> None:
    task = started(server, "print")
    with served(app_of(server.server)) as url:
        assert _asked(url, task["taskId"], named=task["taskId"])["result"]["taskId"]
        for named in ("999", ""):
            answer = _asked(url, task["taskId"], named=named)
            assert answer["error"]["code"] == HEADER_MISMATCH


def _asked(url: str, task_id: str, *, named: str) -> dict[str, Any]:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"extensions": {IDENTIFIER: {}}},
    }
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tasks/get",
        "params": {"taskId": task_id, "_meta": meta},
    }
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tasks/get",
        **({"Mcp-Name": named} if named else {}),
    }
    connection = HTTPConnection(urlsplit(url).netloc, timeout=120)
    connection.request("POST", "/mcp", json.dumps(body), headers)
    text = connection.getresponse().read().decode()
    connection.close()
    data = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    answer: dict[str, Any] = json.loads(data[-1] if data else text)
    return answer


@pytest.mark.parametrize("act", [RunTasks.get, RunTasks.cancel])
def test_a_task_needs_the_right_of_the_tool_that_does_the_same(
    server: RunServer, act: Callable[[RunTasks, str], Any]
) -> None:
    principal = Principal(
        actor="token:x", role=Role.ADMIN, scopes=frozenset({Right.JOBS_READ, Right.JOBS_OPERATE})
    )
    tasks = RunTasks(replace(server.state, principal=principal))
    with pytest.raises(NotPermitted, match="permission runs:"):
        act(tasks, "1")
