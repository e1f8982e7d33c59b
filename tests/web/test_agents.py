"""`/mcp` of a web server: tools for agents with a token, each as its right says, about the trees of jobs only."""

import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from support.factories import add_worker, depose_and_take
from support.mcp_http import call_text, send, token_session
from support.waiting import wait_until
from support.web_client import (
    SESSION_COOKIE,
    Client,
    FixedAuthenticator,
    HttpAnswer,
    Served,
    served_application,
)
from tsuzuki.collectors.codeindex.index_file import FOLDER_VARIABLE
from tsuzuki.collectors.codeindex.rights import CODE_READ
from tsuzuki.mcp import http
from tsuzuki.mcp.runs.run_tasks import RunTasks
from tsuzuki.mcp.runs.workspace import ServedWorkspace
from tsuzuki.mcp.tool import ServerState
from tsuzuki.model.access import Principal, Right, Role
from tsuzuki.model.run import RunRef
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.model.states import Reason, RunState
from tsuzuki.services.runs import Request
from tsuzuki.store import logs
from tsuzuki.store.logs import LogLine
from tsuzuki.store.runs import moves, run_search
from tsuzuki.store.runs.run_search import FoundRuns
from tsuzuki.store.sql.database import Connection
from tsuzuki.web import agents
from tsuzuki.web.server import Address, WebServer

FILE = """\
jobs: {code: {type: codeindex, roots: [tree]}}
log_archive: "${ARCHIVE}"
"""
SECRET = "./logs-of-correct-horse"
LONG_LINE = f"{'x' * 285}{SECRET}{'y' * 160} {SECRET} {'z' * 700}{SECRET}"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("workspace")
    (folder / "tsuzuki.yaml").write_text(FILE, encoding="utf-8")
    (folder / "private.py").write_text("PRIVATE = 1\n", encoding="utf-8")
    root = folder / "tree"
    (root / "part").mkdir(parents=True)
    (root / "sums.py").write_text("def total():\n    return 0\n", encoding="utf-8")
    (root / "part" / "tax.py").write_text("def tax():\n    return 1\n", encoding="utf-8")
    (root / ".gitignore").write_text(".env\n", encoding="utf-8")
    (root / ".env").write_text("KEY=PRIVATE\n", encoding="utf-8")
    (root / "link.py").symlink_to(folder / "private.py")
    return folder


@pytest.fixture(scope="module")
def served(workspace: Path) -> Iterator[Served]:
    """With the tokens of the database."""
    with (
        pytest.MonkeyPatch.context() as patch,
        served_application(workspace, environ={"ARCHIVE": SECRET}, fixed=False) as served,
    ):
        patch.setenv(FOLDER_VARIABLE, str(workspace / "indexes"))
        served.application.jobs.apply()
        served.application.jobs.define("hello", {"command": ["true"]})
        yield served


def token(served: Served, name: str, role: Role, *scopes: Right) -> str:
    made = served.application.tokens.create(
        name, role=role, scopes=frozenset(scopes) or None, by=served.application.principal
    )
    return made.text


@pytest.fixture(scope="module")
def operator(served: Served) -> str:
    return token(served, "operator", Role.OPERATOR)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_with_a_token_starts_a_run_under_the_name_of_the_token(
    served: Served, operator: str, mode: str
) -> None:
    session = token_session(served.server.url, operator, mode=mode)
    try:
        assert len(session.run(session.client.list_tools()).tools) == 13
        started = session.call("run_start", {"job": "hello"})
        assert not started.is_error, started
        run_id = started.structured_content["run_id"]
        session.call("run_cancel", {"run_id": run_id})
        assert served.application.runs.get(run_id).run.state is RunState.CANCELED
        actors = {
            (entry.action, entry.actor)
            for entry in served.application.audit.find(limit=20)
            if entry.object_id == str(run_id)
        }
        assert actors == {("run.start", "token:operator"), ("run.cancel", "token:operator")}
    finally:
        session.close()


def test_a_token_sees_the_tools_of_its_scopes_and_is_told_the_scope_of_others(
    served: Served,
) -> None:
    session = token_session(
        served.server.url, token(served, "reader", Role.OPERATOR, Right.RUNS_READ)
    )
    try:
        names = [tool.name for tool in session.run(session.client.list_tools()).tools]
        assert names == ["run_get", "run_list", "run_logs"]
        refused = session.call("run_start", {"job": "hello"})
        assert refused.is_error
        assert "create one with the scope jobs:operate" in refused.content[0].text
    finally:
        session.close()


def test_a_tree_of_a_job_is_built_with_the_first_question_and_answers(
    served: Served, operator: str, workspace: Path
) -> None:
    reader = served.client.as_(token(served, "code", Role.OPERATOR, CODE_READ))
    shutil.rmtree(workspace / "indexes", ignore_errors=True)  # another test may have had it built
    missing = call_text(reader, "code_references", name="total")
    assert "index_missing" in missing
    assert "A token with the scope code:build can start a build." in missing
    client = served.client.as_(operator)
    assert "sums.py" in call_text(client, "code_search", query="total")
    assert "def tax" in call_text(client, "code_read", symbols=["tax"], path="part")
    assert "def tax" in call_text(
        client, "code_read", symbols=["tax"], path=str(workspace / "tree" / "part")
    )
    built = call_text(client, "code_index_build", force=True, wait_seconds=30)
    assert "completed: 3 of 3 files, 3 updated" in built
    assert "completed" in call_text(client, "code_index_status")


@pytest.mark.parametrize(
    "path", ["", "private.py", "no-such", "tree/../private.py", "/etc/passwd", "a\0b"]
)
def test_no_other_folder_is_read(served: Served, operator: str, workspace: Path, path: str) -> None:
    answer = call_text(
        served.client.as_(operator), "code_read", file="private.py", path=str(workspace / path)
    )
    wanted = (
        "root_not_folder"
        if "\0" in path
        else "root_refused: this server only answers questions about"
    )
    assert answer.startswith(f"!{wanted}"), answer
    assert "PRIVATE" not in answer


@pytest.mark.parametrize("file", ["../private.py", ".env", "link.py"])
def test_no_file_that_is_not_indexed_is_read(served: Served, operator: str, file: str) -> None:
    answer = call_text(served.client.as_(operator), "code_read", file=file)
    assert answer.startswith("!"), answer
    assert "PRIVATE =" not in answer
    assert "KEY=" not in answer


def test_secrets_are_masked_in_the_answers(served: Served, operator: str) -> None:
    client = served.client.as_(operator)
    described = {"command": ["true"], "description": f"uses {SECRET}"}
    served.application.jobs.define("described", described)
    listed = call_text(client, "job_list", query="described")
    assert "uses ***" in listed
    assert SECRET not in listed


def ended_run(served: Served, state: RunState, **about: Any) -> int:
    """A run that a worker ended so."""
    database = served.application.runs._database
    term = depose_and_take(database)
    worker = add_worker(database, f"worker-{uuid4()}")
    run_id = served.application.runs.submit(Request(job="hello")).run_id
    with database.write() as connection:
        assignment = moves.Assignment(run=RunRef(id=run_id, version=1), worker_id=worker)
        assert moves.assign(connection, term=term, assignments=[assignment])
        assigned = [RunRef(id=run_id, version=2)]
        started = moves.start(connection, worker_id=worker, runs=assigned)[run_id].started
        line = LogLine(seq=1, at=database.clock.now(), stream="stdout", body=LONG_LINE)
        logs.append(connection, worker_id=worker, lines=[(started, line)])
        end = moves.RunEnd(run=started, state=state, **about)
        assert moves.finish(connection, worker_id=worker, ends=[end])
    return run_id


def test_a_secret_in_the_result_of_a_run_is_masked_by_its_key(
    served: Served, operator: str
) -> None:
    result = {"password": "hunter2", "rows": 3}
    run_id = ended_run(served, RunState.SUCCEEDED, result=result)
    shown = call_text(served.client.as_(operator), "run_get", run_id=run_id)
    assert 'result: {"password":"***","rows":3}' in shown
    state = ServerState(
        environ={},
        cwd=Path("/"),
        mask=served.application.mask,
        makers={"workspace": lambda: ServedWorkspace(served.application)},
    )
    task = RunTasks(state).get(str(run_id))
    assert task is not None
    assert "hunter2" not in str(task.outcome)


@pytest.mark.parametrize("tool", ["run_get", "run_list", "run_logs"])
def test_no_budget_cuts_a_secret_so_that_most_of_it_is_shown(
    served: Served, operator: str, tool: str
) -> None:
    """It stands where a short form of an error or of a line ends, and where an answer is cut."""
    error = f"{'x' * 110}{SECRET}{'y' * 160} {SECRET} {'z' * 300}{SECRET}"
    run_id = ended_run(served, RunState.FAILED, reason=Reason.HANDLER_FAILED, error=error)
    about = {"limit": 1} if tool == "run_list" else {"run_id": run_id}
    client = served.client.as_(operator)
    for budget in range(200, 1000, 9):
        shown = call_text(client, tool, budget=budget, **about)
        assert SECRET[:6] not in shown, (budget, shown)


@pytest.mark.parametrize("levels", [65, 100_000])
def test_arguments_given_as_text_are_not_nested_too_deep(
    served: Served, operator: str, levels: int
) -> None:
    deep = '{"a":' + "[" * levels + "]" * levels + "}"
    answer = call_text(served.client.as_(operator), "run_start", job="hello", arguments=deep)
    assert answer.startswith("!"), answer
    assert "internal_error" not in answer


def test_a_list_of_runs_makes_one_bounded_search_and_answers_where_it_goes_on(
    served: Served, operator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    oldest = served.application.runs.submit(Request(job="hello", concurrency_key="k")).run_id
    served.application.runs.submit_many([Request(job="hello")] * 40)
    client = served.client.as_(operator)
    for name in ("LOOKED_MAX", "LOOKED_UP_MAX", "DISORDER_MAX"):
        monkeypatch.setattr(run_search, name, 5)
    search = run_search.search
    searches: list[RunFilter] = []

    def narrow(connection: Connection, wanted: RunFilter) -> FoundRuns:
        """A filter that no index stands for."""
        searches.append(wanted)
        return search(connection, replace(wanted, concurrency_key="k"))

    monkeypatch.setattr(run_search, "search", narrow)
    shown = call_text(client, "run_list")
    assert len(searches) == 1
    assert "0 of at least 0 runs shown; the search stopped early; more with cursor=" in shown
    while f"\n{oldest} hello" not in shown:
        cursor = re.search("cursor=(.+)", shown)
        assert cursor, shown
        shown = call_text(client, "run_list", cursor=cursor[1])
    assert len(searches) < 20


def test_a_read_of_a_tool_has_the_time_limit_of_other_requests(
    served: Served, operator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = served.application.runs._database

    def search(_runs: object, _wanted: RunFilter) -> None:
        with database.read() as connection:
            connection.exec_driver_sql(
                "WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s"
                " WHERE n < 1000000000) SELECT count(*) FROM s"
            )

    monkeypatch.setattr(agents, "READ_SECONDS", 0.05)
    monkeypatch.setattr("tsuzuki.services.runs.Runs.search", search)
    assert call_text(served.client.as_(operator), "run_list").startswith("!read_timed_out")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Origin": "https://attacker.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Host": "localhost:9", "Origin": "http://localhost:9"}, 200),
        ({"Host": "attacker.example"}, 421),
    ],
)
def test_a_page_of_another_site_is_refused_also_with_a_token(
    served: Served, operator: str, headers: dict[str, str], status: int
) -> None:
    answer = send(served.client.as_(operator), "tools/list", headers=headers)
    assert answer.status == status, answer.body


@pytest.fixture(scope="module")
def fixed(workspace: Path) -> Iterator[Served]:
    environ = {"ARCHIVE": SECRET}
    with served_application(workspace / "tree" / "part", environ=environ) as served:
        yield served


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Origin": "https://attacker.example"}, 403),
        ({}, 403),
    ],
)
def test_a_session_of_a_browser_is_taken_from_our_own_origin_only(
    fixed: Served, headers: dict[str, str], status: int
) -> None:
    with_cookie = {"Cookie": f"{SESSION_COOKIE}=operator", **headers}
    answer = send(fixed.client.as_(None), "tools/list", headers=with_cookie)
    assert answer.status == status, answer.body


def test_other_methods_are_refused_for_no_session_is_kept(client: Client) -> None:
    for method in ("GET", "DELETE"):
        answer = client.request(method, "/mcp", headers={"Accept": "text/event-stream"})
        assert (answer.status, answer.headers["allow"]) == (405, "OPTIONS, POST")


def test_what_is_no_message_is_refused_in_the_words_of_the_protocol(fixed: Served) -> None:
    answer = fixed.client.request(
        "POST", "/mcp", raw=b"{", headers={"Accept": "application/json, text/event-stream"}
    )
    assert (answer.status, answer.json["error"]["code"]) == (400, -32700)
    wrong = send(fixed.client, "tools/list", tools="some")
    assert (wrong.status, wrong.code) == (422, "invalid_value")


class Expiring(FixedAuthenticator):
    """A token that is valid `uses` times; `is_checked_again` is set at the second."""

    def __init__(self, uses: float) -> None:
        self.uses = uses
        self.seen = 0
        self.is_checked_again = threading.Event()
        self.answers: list[HttpAnswer] = []

    def by_token(self, text: str) -> Principal | None:
        self.seen += 1
        if self.seen > 1:
            self.is_checked_again.set()
        return super().by_token(text) if self.seen <= self.uses else None


@contextmanager
def waiting_call(served: Served, authenticator: Expiring) -> Iterator[WebServer]:
    """A server of its own, and a call to it that waits for a run that no worker executes; its answer is in
    `authenticator.answers` when the call has ended."""
    run = served.application.runs.submit(Request(job="hello"))
    address = Address(host="127.0.0.1", port=0)
    server = WebServer(served.application, address, authenticator=authenticator)
    server.start()
    params = {"name": "run_get", "arguments": {"run_id": run.run_id, "wait_seconds": 30}}

    def call() -> None:
        answer = send(Client(server.url, "operator"), "tools/call", params)
        authenticator.answers.append(answer)

    thread = threading.Thread(target=call)
    thread.start()
    try:
        assert authenticator.is_checked_again.wait(120)
        yield server
        thread.join(120)
    finally:
        server.stop()


def test_a_call_ends_when_its_token_is_revoked(served: Served) -> None:
    authenticator = Expiring(uses=1)
    with waiting_call(served, authenticator):
        pass
    (answer,) = authenticator.answers
    assert b"result" not in answer.body


def test_a_server_stops_in_time_while_a_call_waits(served: Served) -> None:
    authenticator = Expiring(uses=1000)
    with waiting_call(served, authenticator) as server:
        assert server.stop()
    (answer,) = authenticator.answers
    assert b"result" not in answer.body


def test_one_principal_leaves_calls_to_others(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "CALLS_MAX", 4)
    monkeypatch.setattr(http, "CALLS_OF_PRINCIPAL_MAX", 2)
    run_id = served.application.runs.submit(Request(job="hello")).run_id
    server = WebServer(
        served.application,
        Address(host="127.0.0.1", port=0),
        authenticator=FixedAuthenticator(),
    )
    server.start()
    waiting = {"name": "run_get", "arguments": {"run_id": run_id, "wait_seconds": 30}}
    look = {"name": "run_get", "arguments": {"run_id": run_id}}
    ended: list[HttpAnswer] = []

    def wait_for_the_run() -> None:
        ended.append(send(Client(server.url, "operator"), "tools/call", waiting))

    threads = [threading.Thread(target=wait_for_the_run) for _ in range(6)]
    try:
        for thread in threads:
            thread.start()
        connections = server._server.server_state.connections
        calls = server.app.state.agents.tools()._threads
        wait_until(lambda: len(connections) == 6 and calls.borrowed_tokens >= 2, "they wait")
        answer = send(Client(server.url, "viewer"), "tools/call", look)
        assert (answer.status, ended) == (200, [])
        served.application.runs.cancel(run_id)
        for thread in threads:
            thread.join(120)
        assert [answer.status for answer in ended] == [200] * 6
    finally:
        server.stop()
