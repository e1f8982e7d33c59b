"""Runs started per second by 16 clients over HTTP, compared with the library's submit.

All ways are measured in turn on the same database and server, each in processes of their own, so what else the
machine does touches all of them; a ratio is the median of those of the rounds. What is counted is stored.
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
from typing import Any, TypeAlias

import psutil

from bench.web.pages import listening, processor_seconds
from bench.web.served import server
from tsuzuki import Tsuzuki
from tsuzuki.model.access import Role
from tsuzuki.wiring.application import opened

CLIENTS = 16
JOB = "started-by-clients"
WARM_UP = 320
WAYS = ("library", "api", "api_with_token")

Figures: TypeAlias = dict[str, float]


def measure(url: str, *, runs: int, rounds: int) -> dict[str, Any]:
    """Runs a second by the library and by the API with and without a token, their ratio, and the processor time of a
    run in the process that stores it: that of the library, or the server."""
    token = _prepare(url)
    with server(url) as port:
        process = listening(port)
        api = ("api", str(port))
        _in_process(*api, str(WARM_UP))
        _in_process(*api, str(WARM_UP), token)
        found = []
        for _ in range(rounds):
            library = _in_process("library", url, str(runs))
            open_to_all = _served(process, runs, *api, str(runs))
            with_token = _served(process, runs, *api, str(runs), token)
            found.append({"library": library, "api": open_to_all, "api_with_token": with_token})
    return {
        "per_second": {way: round(_median(found, way, "per_second")) for way in WAYS},
        "ratio": _ratio(found, "api"),
        "ratio_with_token": _ratio(found, "api_with_token"),
        "processor_us": {way: round(_median(found, way, "processor_us")) for way in WAYS},
    }


def _median(found: list[dict[str, Figures]], way: str, figure: str) -> float:
    return statistics.median(figures[way][figure] for figures in found)


def _ratio(found: list[dict[str, Figures]], way: str) -> float:
    """Ratio of the rates in each round."""
    rates = [figures[way]["per_second"] / figures["library"]["per_second"] for figures in found]
    return round(statistics.median(rates), 2)


def _served(process: psutil.Process, runs: int, *words: str) -> Figures:
    """With the processor time of the server, not of the clients."""
    before = processor_seconds(process)
    figures = _in_process(*words)
    return {**figures, "processor_us": (processor_seconds(process) - before) / runs * 1e6}


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


def _in_process(*words: str) -> Figures:
    command = [sys.executable, "-W", "ignore", "-m", "bench.web.submit", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    figures: Figures = json.loads(done.stdout.splitlines()[-1])
    return figures


def _measured(runs: int, start_client: Callable[[], Callable[[], None]]) -> Figures:
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
    started_at, used = time.perf_counter(), time.process_time()
    for thread in threads:
        thread.join()
    done = runs // CLIENTS * CLIENTS
    return {
        "per_second": done / (time.perf_counter() - started_at),
        "processor_us": (time.process_time() - used) / done * 1e6,
    }


def by_library(url: str, runs: int) -> Figures:
    with Tsuzuki(url, environ={}, cwd=Path("/")) as app:
        return _measured(runs, lambda: lambda: app.submit(JOB))


def by_api(port: int, runs: int, token: str | None) -> Figures:
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

    return _measured(runs, connect)


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
        print(json.dumps(by_library(place, int(count))))
    else:
        print(json.dumps(by_api(int(place), int(count), rest[0] if rest else None)))
