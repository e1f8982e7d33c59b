"""`tsuzuki mcp --http`: streamable HTTP on loopback, for this machine's clients only."""

import re
import subprocess
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest

from support.mcp_http import token_session
from support.mcp_session import server_command, server_environ

HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": "2025-11-25",
}
TOKEN = "0123456789abcdef"
PING_STATUS = 400
"""It is authenticated, and then refused because no session was begun."""

PING = '{"jsonrpc":"2.0","id":1,"method":"ping"}'


@pytest.fixture(scope="module")
def port(tree: Path, index_folder: Path) -> Iterator[int]:
    with subprocess.Popen(
        server_command("--root", str(tree), "--http", "--port", "0"),
        env={**server_environ(index_folder), "TSUZUKI_MCP_TOKEN": TOKEN},
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr
        found = re.search(r"http://127\.0\.0\.1:(\d+)/mcp", process.stderr.readline())
        assert found
        yield int(found[1])
        process.terminate()
        assert process.wait(120) == 0


def status(port: int, **headers: str) -> int:
    connection = HTTPConnection("127.0.0.1", port, timeout=120)
    told = {
        **HEADERS,
        "Authorization": f"Bearer {TOKEN}",
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    connection.request("POST", "/mcp", PING, told)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_lists_and_calls_the_tools(mode: str, port: int) -> None:
    session = token_session(f"http://127.0.0.1:{port}", TOKEN, mode=mode)
    try:
        assert len(session.run(session.client.list_tools()).tools) == 7
        result = session.call("code_search", {"query": "Cart"})
        assert "shop/cart.py" in result.content[0].text
    finally:
        session.close()


@pytest.mark.parametrize("given", ["", "Bearer ", "Bearer 0123456789abcdeg", f"Basic {TOKEN}"])
def test_a_request_without_the_token_is_refused(port: int, given: str) -> None:
    assert status(port, Authorization=given) == 401


def test_ignored_files_and_those_of_git_are_not_shown(port: int, tree: Path) -> None:
    (tree / ".gitignore").write_text(".env\n")
    (tree / ".env").write_text("PASSWORD=1\n")
    session = token_session(f"http://127.0.0.1:{port}", TOKEN)
    try:
        for name, part in ((".env", "PASSWORD"), (".git/config", "[core]")):
            assert part in (tree / name).read_text()
            answer = session.call("code_read", {"file": name}).content[0].text
            assert part not in answer
            assert "no_such" in answer
    finally:
        session.close()
        (tree / ".gitignore").unlink()


def test_an_expression_that_does_not_end_is_stopped(port: int, tree: Path) -> None:
    (tree / "evil.txt").write_text("a" * 40 + "!\n")
    session = token_session(f"http://127.0.0.1:{port}", TOKEN)
    try:
        assert session.call("code_search", {"query": "(a+)+$", "regex": True}).is_error
        assert not session.call("code_search", {"query": "total"}).is_error
    finally:
        session.close()
        (tree / "evil.txt").unlink()


def test_without_a_variable_a_token_is_made_and_printed(tree: Path, index_folder: Path) -> None:
    with subprocess.Popen(
        server_command("--root", str(tree), "--http", "--port", "0"),
        env=server_environ(index_folder),
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr
        said = process.stderr.readline() + process.stderr.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/mcp.*Bearer (\S{40,})", said, re.DOTALL)
        codes = [status(int(found[1]), Authorization=f"Bearer {found[2]}")] if found else []
        codes += [status(int(found[1]))] if found else []
        process.terminate()
    assert codes == [PING_STATUS, 401]


def test_a_page_of_another_site_is_refused(port: int) -> None:
    assert status(port, Origin="https://attacker.example") == 403


def test_a_name_that_was_rebound_to_this_machine_is_refused(port: int) -> None:
    assert status(port, Host="attacker.example") == 421


def test_it_listens_on_loopback_only(port: int) -> None:
    inodes = Path("/proc/net/tcp").read_text("ascii")
    listening = [line.split()[1] for line in inodes.splitlines()[1:] if line.split()[3] == "0A"]
    assert f"0100007F:{port:04X}" in listening
    assert f"00000000:{port:04X}" not in listening


def test_a_tree_that_it_was_not_started_for_is_refused(port: int, tmp_path: Path) -> None:
    """Other users of the machine can reach the port."""
    (tmp_path / "secret.txt").write_text("secret")
    session = token_session(f"http://127.0.0.1:{port}", TOKEN)
    try:
        result = session.call("code_read", {"path": str(tmp_path), "file": "secret.txt"})
        assert result.is_error
        assert "this server only answers questions about" in result.content[0].text
        assert not session.call("code_search", {"query": "total", "path": "docs"}).is_error
    finally:
        session.close()
