"""Real server processes: they start fast, share a tree, and leave nothing behind when their client is gone."""

import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from support.mcp_server_process import STOPPED_BUILD, ServerProcess, are_gone
from support.mcp_session import make_tree, server_environ
from tsuzuki.collectors.codeindex.service.builds import Builds

pytestmark = pytest.mark.slow
FILES_COUNT = 340
"""More than worker processes parse ahead of a build that stands still."""


@pytest.fixture
def large_tree(tmp_path: Path) -> Path:
    """Enough files for worker processes."""
    files = {
        f"module_{number}.py": f"def function_{number}(): pass\n" for number in range(FILES_COUNT)
    }
    return make_tree(tmp_path / "tree", files)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "indexes"


def building(root: Path, folder: Path) -> ServerProcess:
    """A server in the middle of a build."""
    server = ServerProcess(root, folder, before=STOPPED_BUILD).shake_hands()
    started = server.call("code_index_build")["structuredContent"]
    while (
        server.call("code_index_status")["structuredContent"]["job"]["progress"]["processed"] == 0
    ):
        pass
    assert started["status"] == "running"
    return server


def test_the_tools_are_listed_before_anything_is_loaded_or_indexed(
    large_tree: Path, folder: Path
) -> None:
    with ServerProcess(large_tree, folder) as server:
        tools = server.shake_hands().request("tools/list")["tools"]
    assert len(tools) == 7
    assert not folder.exists()


def printed_by(program: str) -> str:
    """What a new Python prints."""
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout


def test_a_server_starts_without_what_only_its_answers_need() -> None:
    loaded = printed_by("""
import sys
import tsuzuki.mcp.serve
from tsuzuki.mcp.presets import presets
presets()
print(*sys.modules)
""").split()
    code = "tsuzuki.collectors.codeindex"
    ours = (
        "sqlalchemy",
        "tree_sitter",
        "tsuzuki.wiring.application",
        "tsuzuki.services",
        f"{code}.service",
    )
    assert [name for name in loaded if name.startswith(ours)] == []


def test_a_server_whose_stdin_is_closed_ends_with_its_build(large_tree: Path, folder: Path) -> None:
    with building(large_tree, folder) as server:
        processes = server.with_children()
        assert len(processes) > 1
        assert server.process.stdin
        server.process.stdin.close()
        assert server.process.wait(120) == 0
        assert are_gone(processes)
    job = Builds(environ=server_environ(folder)).status(large_tree).job
    assert job
    assert (job.status, job.error) == ("failed", "cancelled")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_server_that_is_ended_leaves_no_process_and_a_valid_index(
    number: signal.Signals, large_tree: Path, folder: Path
) -> None:
    with building(large_tree, folder) as server:
        processes = server.with_children()
        server.process.send_signal(number)
        assert server.process.wait(120) == (0 if number == signal.SIGTERM else -number)
        assert are_gone(processes)
    builds = Builds(environ=server_environ(folder), workers=1)
    job = builds.jobs.wait(builds.start(large_tree).id, 60)
    assert job
    assert job.result
    assert job.result.updated_files < FILES_COUNT
    assert job.result.total_indexed_symbols == FILES_COUNT


def test_a_server_ends_when_its_client_is_killed(large_tree: Path, folder: Path) -> None:
    client = """
import subprocess, sys
server = subprocess.Popen([sys.executable, "-m", "tsuzuki", "mcp", "--root", sys.argv[1]],
    stdin=subprocess.PIPE, stdout=subprocess.PIPE)
print(server.pid, flush=True)
server.wait()
"""
    with subprocess.Popen(
        [sys.executable, "-c", client, str(large_tree)],
        env=server_environ(folder),
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        server = psutil.Process(int(process.stdout.readline()))
        process.kill()
    assert are_gone([server])


def test_a_second_server_is_told_the_build_of_the_first(large_tree: Path, folder: Path) -> None:
    with building(large_tree, folder) as first, ServerProcess(large_tree, folder) as second:
        running = first.call("code_index_build")["structuredContent"]
        assert running["already_running"]
        told = second.shake_hands().call("code_index_build")["structuredContent"]
        assert (told["id"], told["already_running"]) == (running["id"], True)
        answer = second.call("code_search", query="function_1", **{"in": "names"})
        index = answer["structuredContent"]["index"]
        assert index["state"] == "building"
        assert f"index building {index['percent']} %" in answer["content"][0]["text"]
        partial = second.call("code_read", symbols=["function_339", "no_such_function"])
        assert not partial.get("isError")


@pytest.mark.full
@pytest.mark.timeout(600)
def test_sixteen_servers_share_a_tree(large_tree: Path, folder: Path) -> None:
    servers = [ServerProcess(large_tree, folder) for _ in range(16)]
    processes = []
    for server in servers:
        server.shake_hands()
    for server in servers:
        answer = server.call("code_read", symbols=["function_7"])
        assert "module_7.py" in answer["content"][0]["text"]
        processes += server.with_children()
        assert server.process.stdin
        server.process.stdin.close()
    assert are_gone(processes)
    for server in servers:
        server.__exit__(None, None, None)
