"""`tsuzuki mcp`, as far as it gets without a client."""

import socket
import sys

import pytest

from support.workspace import Workspace


def test_a_port_is_only_for_http(empty: Workspace) -> None:
    done = empty.run("mcp", "--port", "8940")
    assert done.code == 2
    assert "--port requires --http" in done.err


def test_a_port_that_is_taken_is_told_with_the_next_step(empty: Workspace) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = empty.run("mcp", "--http", "--port", str(port))
    assert done.code != 0
    assert f"cannot use port {port} of 127.0.0.1" in done.err
    assert "--port; 0 picks a free one" in done.err


def test_without_the_sdk_the_extra_is_named(
    empty: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("tsuzuki.mcp.serve")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mcp", None)
    monkeypatch.setitem(sys.modules, "mcp.server.stdio", None)
    done = empty.run("mcp")
    assert done.code == 3
    assert "pip install 'tsuzuki[mcp]'" in done.err
