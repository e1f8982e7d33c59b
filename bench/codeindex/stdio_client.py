"""A client of an MCP server on stdio that adds nothing to its answers' time: a line for a line."""

import json
import subprocess
from typing import Any

PROTOCOL = "2025-11-25"


class StdioClient:
    """One request at a time; notifications of the server are passed over."""

    def __init__(self, server: "subprocess.Popen[str]") -> None:
        self._server = server
        self._last_id = 0

    def shake_hands(self) -> None:
        said = {"name": "bench", "version": "1"}
        self.request(
            "initialize", {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": said}
        )
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return self.request("tools/call", {"name": tool, "arguments": arguments})

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._last_id += 1
        self._send({"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params})
        assert self._server.stdout is not None
        while True:
            answer = json.loads(self._server.stdout.readline())
            if answer.get("id") == self._last_id:
                result: dict[str, Any] = answer["result"]
                return result

    def _send(self, message: dict[str, Any]) -> None:
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps(message) + "\n")
        self._server.stdin.flush()
