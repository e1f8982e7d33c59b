"""A real server in a process of its own, and a client that keeps its connection."""

import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

START_SECONDS = 180.0
"""A busy machine takes long to start a process."""


class Client:
    def __init__(self, port: int, token: str | None = None) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}

    def get(self, path: str) -> Any:
        return self._ask("GET", path, None)

    def post(self, path: str, body: Any) -> Any:
        return self._ask("POST", path, json.dumps(body))

    def _ask(self, method: str, path: str, body: str | None) -> Any:
        headers = dict(self._headers)
        if body is not None:
            headers["Content-Type"] = "application/json"
        self._connection.request(method, f"/api/v1/{path}", body, headers)
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {answer.status} {content[:300]!r}")
        return json.loads(content)


def with_cursor(path: str, cursor: str) -> str:
    return f"{path}&cursor={quote(cursor)}"


@contextmanager
def server(url: str) -> Iterator[int]:
    """The port of a server of this database."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="tsuzuki-bench-") as folder:
        environment = {
            **os.environ,
            "TSUZUKI_DATABASE_URL": url,
            "TSUZUKI_WEB_OWNER_MODE": "open",
        }
        command = [sys.executable, "-W", "ignore", "-m", "tsuzuki", "web"]
        process = subprocess.Popen(
            [*command, "--listen", f"127.0.0.1:{port}"],
            cwd=folder,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            _wait_for(port, process)
            yield port
        finally:
            process.terminate()
            process.wait(START_SECONDS)


def _wait_for(port: int, process: "subprocess.Popen[bytes]") -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError("the server did not start")
