"""The preset `runs` through the SDK's client: start, look, wait, list, cancel, and the answers' two channels."""

import base64
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.mcp_runs import RunServer, run_server, run_workspace, sources_of, text_of
from support.open_sites import shared_site
from tsuzuki.mcp.arguments import checked_arguments
from tsuzuki.mcp.calls import answer_call
from tsuzuki.mcp.paging import question_of
from tsuzuki.mcp.presets import presets
from tsuzuki.mcp.runs.definitions import RUN_LIST, RUN_LOGS, RUNS
from tsuzuki.mcp.runs.workspace import application_of
from tsuzuki.mcp.tokens import compact_json, tokens
from tsuzuki.mcp.tool import Tool, ToolCall, ToolProgress
from tsuzuki.model.errors import Unreachable, UsageError
from tsuzuki.model.states import RunState
from tsuzuki.services.runs import Request

NAMES = ["run_start", "run_get", "run_list", "run_cancel", "run_logs", "job_list"]


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return sources_of(tmp_path_factory.mktemp("workspace"))


@pytest.fixture(scope="module")
def server(sources: dict[str, Any]) -> Iterator[RunServer]:
    """With an engine that executes what is started."""
    with run_workspace(sources), run_server(sources) as server:
        yield server


@pytest.fixture
def idle(tmp_path: Path) -> Iterator[RunServer]:
    """Without an engine: what is started waits."""
    sources = sources_of(tmp_path)
    with run_workspace(sources, engine=False), run_server(sources) as server:
        yield server


def started(server: RunServer, job: str, **more: Any) -> int:
    structured = server.call("run_start", job=job, **more).structured_content
    assert structured is not None
    return int(structured["run_id"])


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_both_eras_list_the_tools_in_their_order(server: RunServer, mode: str) -> None:
    async def ask(client: Any) -> Any:
        return await client.list_tools()

    tools = server.with_client(ask, mode=mode).tools
    assert [one.name for one in tools] == NAMES
    read_only = {one.name for one in tools if one.annotations and one.annotations.read_only_hint}
    assert read_only == {"run_get", "run_list", "run_logs", "job_list"}


def test_a_run_is_started_waited_for_and_read(database_url: str, tmp_path: Path) -> None:
    sources = sources_of(tmp_path, database_url)
    with run_workspace(sources), run_server(sources) as server:
        run_id = started(server, "print")
        ended = server.call("run_get", run_id=run_id, wait_seconds=30)
        assert ended.structured_content is not None
        assert ended.structured_content["state"] == RunState.SUCCEEDED
        assert text_of(server.call("run_logs", run_id=run_id)).splitlines() == [
            f"3 of 3 lines of run {run_id} shown",
            "1: line 0",
            "2: line 1",
            "3: line 2",
        ]
        assert f"{run_id} print SUCCEEDED" in text_of(server.call("run_list", job="print"))
        assert "print: command, manual - writes three lines" in text_of(server.call("job_list"))


def test_a_failed_run_shows_its_error_and_the_end_of_its_log(server: RunServer) -> None:
    result = server.call("run_wait", run_id=started(server, "failing_job"))
    assert not result.is_error, "the call worked: it is the run that failed"
    assert "error: exit code 1: it broke" in text_of(result)
    assert text_of(result).endswith("log, last lines:\n1 stderr: it broke")


def test_a_run_that_has_not_ended_in_time_is_told_as_it_is(server: RunServer) -> None:
    run_id = started(server, "slow_compute", arguments={"seconds": 60})
    result = server.call("run_get", run_id=run_id, wait_seconds=1)
    assert not result.is_error
    assert f'Next: run_get {{"run_id":{run_id},"wait_seconds":30}}' in text_of(result)
    canceled = server.call("run_cancel", run_id=run_id).structured_content
    assert canceled is not None
    assert (canceled["state"], canceled["is_final"]) == (RunState.CANCELED, True)


def test_arguments_may_come_as_an_object_or_as_its_text(idle: RunServer) -> None:
    for given in ({"seconds": 5}, '{"seconds": 5}'):
        run_id = started(idle, "slow_compute", arguments=given)
        run = application_of(idle.state).runs.get(run_id).run
        assert run.arguments == {"seconds": 5}


def test_the_same_key_gives_the_same_run(idle: RunServer) -> None:
    first = started(idle, "print", key="november")
    again = idle.call("run_start", job="print", idempotency_key="november")
    assert again.structured_content is not None
    assert (again.structured_content["run_id"], again.structured_content["is_new"]) == (
        first,
        False,
    )
    assert "The key was used before" in text_of(again)


def test_a_run_that_waits_says_why(idle: RunServer) -> None:
    text = text_of(idle.call("run_start", job="print"))
    assert "waits: " in text
    assert "tsuzuki up" in text


def test_either_channel_is_complete(idle: RunServer) -> None:
    run_id = started(idle, "print")
    for tool, arguments in [
        ("run_start", {"job": "print"}),
        ("run_get", {"run_id": run_id}),
        ("run_list", {}),
        ("run_logs", {"run_id": run_id}),
        ("job_list", {}),
    ]:
        result = idle.call(tool, **arguments)
        assert result.structured_content is not None
        header, _, text = text_of(result).partition("\n")
        assert result.structured_content["text"] == text
        said = {**result.structured_content, "text": ""}
        numbers = [str(value) for value in said.values() if value and isinstance(value, str)]
        assert all(one in header for one in numbers), (
            "what the header says stands in keys, and vice versa"
        )


def example_of(tool: Tool) -> dict[str, Any]:
    return dict(tool.example)


@pytest.mark.parametrize("tool", RUNS.tools, ids=lambda tool: tool.name)
def test_unknown_misspelt_and_missing_arguments_are_told(tool: Tool) -> None:
    names = [one.name for one in tool.parameters]
    with pytest.raises(UsageError, match="has no argument") as unknown:
        checked_arguments(tool, {**example_of(tool), "zzz": 1})
    assert all(name in (unknown.value.hint or "") for name in names)
    assert f"Next: {tool.name}" in (unknown.value.hint or "")
    misspelt = names[0][:-1] + "x" + names[0][-1]
    with pytest.raises(UsageError, match=f'Did you mean "{names[0]}"'):
        checked_arguments(tool, {misspelt: 1})
    for needed in (one.name for one in tool.parameters if one.required):
        with pytest.raises(UsageError, match=f'requires "{needed}"'):
            checked_arguments(tool, {})


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("run_get", {"run_id": 999}, ["run_unknown", "Next: run_list {}"]),
        ("run_logs", {"run_id": 999}, ["run_unknown", "Next: run_list {}"]),
        ("run_cancel", {"run_id": 999}, ["run_unknown", "Next: run_list {}"]),
        ("run_get", {"run_id": 10**30}, ["run_unknown", "Next: run_list {}"]),
        ("run_start", {"job": "a\0b"}, ["invalid job name", "Next: job_list {}"]),
        ("run_list", {"job": "\ud800"}, ["invalid job name", "Next: job_list {}"]),
        ("run_start", {"job": "print", "key": "\0"}, ["not_text"]),
        ("run_start", {"job": "prnt"}, ['Did you mean "print"?', "Next: job_list {}"]),
        ("run_list", {"job": "prnt"}, ['Did you mean "print"?', "Next: job_list {}"]),
        ("run_list", {"cursor": "MQ==-abcdef"}, ["bad_cursor"]),
        ("run_get", {"run_id": 1, "wait_seconds": 31}, ["from 0 to 30"]),
        ("run_get", {"run_id": 0}, ["at least 1"]),
        ("run_start", {"job": "print", "arguments": "[1]"}, ['"arguments" of run_start must be']),
    ],
)
def test_an_error_names_the_next_call(
    server: RunServer, tool: str, arguments: dict[str, Any], words: list[str]
) -> None:
    answer = server.answer(tool, **arguments)
    assert answer.is_error
    for word in words:
        assert word in answer.text


@pytest.mark.parametrize("key", ["x", "9" * 30, "-1", "1.5"])
def test_a_cursor_with_a_key_of_another_kind_is_refused(server: RunServer, key: str) -> None:
    for tool in (RUN_LIST, RUN_LOGS):
        call = ToolCall(tool=tool, arguments=tool.example, state=server.state)
        cursor = f"{base64.urlsafe_b64encode(key.encode()).decode()}-{question_of(call)}"
        answer = server.answer(tool.name, **tool.example, cursor=cursor)
        assert answer.text.startswith("bad_cursor")


def test_a_run_that_was_stored_is_named_although_the_database_left(
    idle: RunServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    application = application_of(idle.state)

    def unreachable(run_id: int) -> Any:
        raise Unreachable(f"run {run_id} cannot be read")

    with monkeypatch.context() as gone:
        gone.setattr(application.runs, "get", unreachable)
        answer = idle.answer("run_start", job="print")
        arguments = {"name": "run_start", "arguments": {"job": "print"}}
        as_task = idle.ask("tools/call", **arguments)
    assert not answer.is_error
    assert application.runs.get(answer.structured["run_id"]).run.job_name == "print"
    assert as_task["structuredContent"]["run_id"] == answer.structured["run_id"] + 1


def test_an_ended_run_cannot_be_canceled(server: RunServer) -> None:
    run_id = started(server, "print")
    server.call("run_get", run_id=run_id, wait_seconds=30)
    refused = server.call("run_cancel", run_id=run_id)
    assert refused.is_error
    assert f'Next: run_get {{"run_id":{run_id}}}' in text_of(refused)


def test_where_there_is_no_workspace_each_call_says_what_to_do(tmp_path: Path) -> None:
    with run_server(sources_of(tmp_path)) as server:
        for tool in presets()["runs"].tools:
            answer = server.answer(tool.name, **tool.example)
            assert answer.is_error
            assert "no_workspace" in answer.text
            assert "tsuzuki init" in answer.text
        assert not list(tmp_path.iterdir()), "looking makes nothing"
        with run_workspace(sources_of(tmp_path), engine=False):
            assert not server.call("job_list").is_error, "it looks again with each call"


def test_a_database_that_cannot_be_reached_is_told(tmp_path: Path) -> None:
    sources = sources_of(tmp_path, "postgresql://user@127.0.0.1:9/none")
    with run_server(sources) as server:
        result = server.call("run_list")
    assert result.is_error
    assert text_of(result).startswith("database: ")


def test_a_file_with_a_mistake_is_told_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "tsuzuki.yaml").write_text("jobs:\n  a:\n    comand: [true]\n", encoding="utf-8")
    with run_server(sources_of(tmp_path)) as server:
        result = server.call("run_start", job="a")
    assert result.is_error
    assert "tsuzuki.yaml:3" in text_of(result)


def test_what_is_started_is_audited_as_the_agents_deed(idle: RunServer) -> None:
    run_id = started(idle, "print")
    idle.call("run_cancel", run_id=run_id)
    audit = application_of(idle.state).audit
    lines = audit.find(object_type="run", object_id=str(run_id))
    assert [line.action for line in lines] == ["run.cancel", "run.start"]
    assert all(line.actor.startswith("mcp:") for line in lines)


def test_code_and_runs_together_have_all_tools() -> None:
    both = [one.name for one in presets()["all"].tools if one.is_listed]
    assert both[-len(NAMES) :] == NAMES
    assert len(both) == len(set(both)) > len(NAMES)


def walked(server: RunServer, tool: str, budget: int, **arguments: Any) -> list[str]:
    """Every line of every page, each page within its budget."""
    lines, cursor = [], None
    while True:
        more = {} if cursor is None else {"cursor": cursor}
        answer = server.answer(tool, budget=budget, **arguments, **more)
        structured = answer.structured
        assert tokens(answer.content) <= budget
        assert tokens(compact_json(structured)) <= budget
        lines.append(structured["text"].splitlines())
        assert len(lines[-1]) == structured["shown"] > 0
        cursor = structured["cursor"]
        if cursor is None:
            return [line for page in lines for line in page]


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunServer]:
    """Many runs and jobs, and a run with a long log."""
    folder = tmp_path_factory.mktemp("full")
    sources = sources_of(folder)
    words = "[print(n, 'x' * (n % 7) * 40 + '日本') for n in range(300)]"
    with run_workspace(sources) as application, run_server(sources) as server:
        application.jobs.define("talk", {"command": [sys.executable, "-c", words]})
        shout = "import sys; sys.exit('日本\"\\\\' * 2000)"
        application.jobs.define("shout", {"command": [sys.executable, "-c", shout]})
        for name in ("talk", "shout"):
            server.call("run_get", run_id=started(server, name), wait_seconds=30)
        application.local_engine.stop(at_once=True)
        application.runs.submit_many([Request(job="print") for _ in range(130)])
        for number in range(60):
            application.jobs.define(f"job-{number:03}", {"command": ["true"]})
        with shared_site(folder):
            yield server


@pytest.mark.parametrize("budget", [200, 300, 1000, 4000])
def test_a_long_error_is_cut_to_the_budget(full: RunServer, budget: int) -> None:
    answer = full.answer("run_get", run_id=2, budget=budget)
    assert answer.fits(budget)
    assert answer.text.startswith("reason: handler_failed\nerror: exit code 1: ")
    assert "..." in answer.text


@pytest.mark.parametrize("budget", [200, 900, 4000])
def test_walks_show_each_thing_once_within_the_budget(full: RunServer, budget: int) -> None:
    runs = [int(line.split()[0]) for line in walked(full, "run_list", budget)]
    assert runs == list(range(132, 0, -1))
    jobs = [line.split(":")[0] for line in walked(full, "job_list", budget)]
    assert jobs == sorted(jobs)
    assert len(jobs) == 65
    for side, wanted in (("start", range(1, 301)), ("end", range(300, 0, -1))):
        lines = walked(full, "run_logs", budget, run_id=1, **{"from": side})
        numbers = [int(line.split(":")[0]) for line in lines]
        assert sorted(numbers) == sorted(wanted)
        assert numbers[0] == 1 or side == "end"


def test_a_run_that_starts_meanwhile_moves_no_page(full: RunServer) -> None:
    first = full.call("run_list", limit=5, job="print").structured_content
    assert first is not None
    started(full, "print")
    second = full.call("run_list", limit=5, job="print", cursor=first["cursor"])
    assert second.structured_content is not None
    ids = [
        int(line.split()[0])
        for page in (first, second.structured_content)
        for line in page["text"].splitlines()
    ]
    assert ids == list(range(132, 122, -1))


def test_a_wait_for_a_run_reports_how_far_it_is(idle: RunServer) -> None:
    progress, run_id = ToolProgress(), started(idle, "print")
    tools = presets()["runs"].tools
    given = {"run_id": run_id, "wait_seconds": 1}
    answer_call(tools, "run_wait", given, state=idle.state, progress=progress)
    assert progress.read() == (0, None, f"run {run_id} PENDING")
