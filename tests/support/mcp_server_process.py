"""A server of `tsuzuki mcp` as a process of its own, spoken to line by line as a client does."""

import json
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil

from support.mcp_session import server_environ

GONE_SECONDS = 120.0
HANDSHAKE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}
STOPPED_BUILD = """
import sys, threading
from tsuzuki.collectors.codeindex.builds import builder
builder.COMMIT_FILES = 10
committed = builder.Builder._commit
def commit_then_stop(self):
    committed(self)
    while self._updated_files and not self._stopping():
        threading.Event().wait(0.02)
builder.Builder._commit = commit_then_stop
"""
"""Builds stand still after the first files, until they are cancelled."""


class ServerProcess:
    """Ends with the test, whatever happens."""

    def __init__(
        self, root: Path, folder: Path, *arguments: str, before: str = "import sys"
    ) -> None:
        program = f"{before}\nfrom tsuzuki.cli import main\nmain()"
        self.process = subprocess.Popen(
            [sys.executable, "-c", program, "mcp", "--root", str(root), *arguments],
            cwd=root,
            env=server_environ(folder),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._number = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _at: TracebackType | None,
    ) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream
            with suppress(BrokenPipeError):
                stream.close()

    def shake_hands(self) -> Self:
        self.request("initialize", HANDSHAKE)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    def request(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The result of a request."""
        self._send_request(method, params or {})
        assert self.process.stdout
        while True:
            message = json.loads(self.process.stdout.readline())
            if message.get("id") == self._number:
                result: dict[str, Any] = message["result"]
                return result

    def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        return self.request("tools/call", {"name": name, "arguments": arguments})

    def send_call(self, name: str, **arguments: Any) -> None:
        """Without waiting for the answer."""
        self._send_request("tools/call", {"name": name, "arguments": arguments})

    def _send_request(self, method: str, params: Mapping[str, Any]) -> None:
        self._number += 1
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def with_children(self) -> list[psutil.Process]:
        """The server and every process it started."""
        server = psutil.Process(self.process.pid)
        return [server, *server.children(recursive=True)]


def are_gone(processes: list[psutil.Process]) -> bool:
    """Whether all processes end soon."""
    _, alive = psutil.wait_procs(processes, timeout=GONE_SECONDS)
    return not alive
