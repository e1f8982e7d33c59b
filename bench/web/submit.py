"""Runs started a second by 16 clients: over HTTP, and beside it by the library's own submit.

Both are measured in turn on the same database, each in processes of their own; what is counted is stored.
The clients of the API keep their connections and send the same request again and again, as cheaply as they can.
"""

import json
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.web.served import server
from tsuzuki import Tsuzuki
from tsuzuki.model.access import Role
from tsuzuki.wiring.application import opened

CLIENTS = 16
JOB = "started-by-clients"


def measure(url: str, *, runs: int, rounds: int) -> dict[str, Any]:
    """Runs a second by the library and by the API with and without a token, and the ratio of their medians."""
    token = _prepare(url)
    figures: dict[str, list[float]] = {"library": [], "api": [], "api_with_token": []}
    with server(url) as port:
        for _ in range(rounds):
            figures["library"].append(_in_process("library", url, str(runs)))
            figures["api"].append(_in_process("api", str(port), str(runs)))
    with server(url) as port:
        for _ in range(rounds):
            words = ("api", str(port), str(runs), token)
            figures["api_with_token"].append(_in_process(*words))
    medians = {name: statistics.median(found) for name, found in figures.items()}
    return {
        "per_second": {name: round(found) for name, found in medians.items()},
        "ratio": round(medians["api"] / medians["library"], 2),
        "ratio_with_token": round(medians["api_with_token"] / medians["library"], 2),
    }


def _prepare(url: str) -> str:
    """The job, and a token for it. A token needs no user."""
    with (
        tempfile.TemporaryDirectory() as folder,
        opened(database_url=url, environ={}, cwd=Path(folder)) as application,
    ):
        if JOB not in {view.name for view in application.jobs.find()}:
            application.jobs.define(JOB, {"command": ["true"], "concurrency_policy": "allow"})
        name = f"bench-{time.time_ns()}"
        made = application.tokens.create(name, role=Role.OPERATOR, by=application.principal)
        return made.text


def _in_process(*words: str) -> float:
    command = [sys.executable, "-W", "ignore", "-m", "bench.web.submit", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return float(json.loads(done.stdout.splitlines()[-1]))


def _per_second(runs: int, start_client: Callable[[], Callable[[], None]]) -> float:
    """Clients are made ready first, and then all start at once."""
    clients = [start_client() for _ in range(CLIENTS)]
    ready = threading.Barrier(CLIENTS + 1)

    def work(submit: Callable[[], None]) -> None:
        submit()
        ready.wait()
        for _ in range(runs // CLIENTS):
            submit()

    threads = [threading.Thread(target=work, args=[client]) for client in clients]
    for thread in threads:
        thread.start()
    ready.wait()
    started_at = time.perf_counter()
    for thread in threads:
        thread.join()
    return runs // CLIENTS * CLIENTS / (time.perf_counter() - started_at)


def by_library(url: str, runs: int) -> float:
    with Tsuzuki(url, environ={}, cwd=Path("/")) as app:
        return _per_second(runs, lambda: lambda: app.submit(JOB))


def by_api(port: int, runs: int, token: str | None) -> float:
    body = b"{}"
    credentials = "" if token is None else f"Authorization: Bearer {token}\r\n"
    head = (
        f"POST /api/v1/jobs/{JOB}/runs HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{credentials}"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    request = head.encode() + body

    def connect() -> Callable[[], None]:
        connection = socket.create_connection(("127.0.0.1", port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return lambda: _exchange(connection, request)

    return _per_second(runs, connect)


def _exchange(connection: socket.socket, request: bytes) -> None:
    connection.sendall(request)
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += connection.recv(65_536)
    head, _, body = answer.partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 201"):
        raise RuntimeError(answer[:500])
    length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
    while len(body) < length:
        body += connection.recv(65_536)


if __name__ == "__main__":
    kind, place, count, *rest = sys.argv[1:]
    if kind == "library":
        print(by_library(place, int(count)))
    else:
        print(by_api(int(place), int(count), rest[0] if rest else None))
