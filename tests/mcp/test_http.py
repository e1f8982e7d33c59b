"""`tsuzuki mcp --http`: streamable HTTP on loopback, for this machine's clients only."""

import re
import subprocess
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest

from support.mcp_session import Session, server_command, server_environ

HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": "2025-11-25",
}
PING = '{"jsonrpc":"2.0","id":1,"method":"ping"}'


@pytest.fixture(scope="module")
def port(tree: Path, index_folder: Path) -> Iterator[int]:
    with subprocess.Popen(
        server_command("--root", str(tree), "--http", "--port", "0"),
        env=server_environ(index_folder),
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
    told = {**HEADERS, **{name.replace("_", "-"): value for name, value in headers.items()}}
    connection.request("POST", "/mcp", PING, told)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_lists_and_calls_the_tools(mode: str, port: int) -> None:
    session = Session(f"http://127.0.0.1:{port}/mcp", mode)
    try:
        assert len(session.run(session.client.list_tools()).tools) == 7
        result = session.call("code_search", {"query": "Cart"})
        assert "shop/cart.py" in result.content[0].text
    finally:
        session.close()


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
    session = Session(f"http://127.0.0.1:{port}/mcp")
    try:
        result = session.call("code_read", {"path": str(tmp_path), "file": "secret.txt"})
        assert result.is_error
        assert "this server answers about" in result.content[0].text
        assert not session.call("code_search", {"query": "total", "path": "docs"}).is_error
    finally:
        session.close()
