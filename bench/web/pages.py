"""How long each page takes to answer, and what viewers of live pages cost the server.

Every page that has an address of its own is measured, so a new screen is measured with the others. Live viewers ask for
the content of a page whenever they heard of a change: here all of them, every two seconds.
"""

import http.client
import statistics
import threading
import time
from typing import Any

import psutil

from bench.web.served import server
from tsuzuki.web.pages import screens
from tsuzuki.web.pages.route import PageRoute

BOUND_MS = 100.0
CORE_PERCENT_MAX = 20.0
REFRESH_SECONDS = 2.0
MEASURED_SECONDS = 20.0
EXAMPLES = (
    "/runs?state=FAILED&state=TIMED_OUT",
    "/runs?job=job-003&window=24h",
    "/runs?exclude_state=SUCCEEDED&window=all",
    "/runs?window=all",
    "/runs/1000",
)


def addresses() -> list[str]:
    """Of every page that needs no choice before."""
    found = {
        route.path
        for router in screens.routers()
        for route in router.routes
        if isinstance(route, PageRoute) and route.methods == {"GET"} and route.right
    }
    return sorted(path for path in found if "{" not in path and path != "/runs/selected")


def measure(url: str, *, rounds: int) -> dict[str, dict[str, Any]]:
    """Milliseconds by page: median and 95th percentile, the templates being compiled."""
    paths = [*addresses(), *EXAMPLES]
    with server(url) as port:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        for path in paths:  # templates are compiled when they are first used
            _get(connection, path)
        times: dict[str, list[float]] = {path: [] for path in paths}
        for _ in range(rounds):
            for path in paths:
                started_at = time.perf_counter()
                _get(connection, path)
                times[path].append((time.perf_counter() - started_at) * 1000)
    return {path: _figures(taken) for path, taken in times.items()}


def _figures(taken: list[float]) -> dict[str, Any]:
    p95 = statistics.quantiles(taken, n=20)[-1]
    median = round(statistics.median(taken), 1)
    return {"p50_ms": median, "p95_ms": round(p95, 1), "within_bound": p95 <= BOUND_MS}


def live_viewers(url: str, *, viewers: int = 200) -> dict[str, Any]:
    """Processor time of the server as a part of one core, while so many viewers follow the list of runs."""
    with server(url) as port:
        process = _listening(port)
        stop = threading.Event()
        threads = [
            threading.Thread(target=_follow, args=(port, stop, number / viewers), daemon=True)
            for number in range(viewers)
        ]
        for thread in threads:
            thread.start()
        time.sleep(REFRESH_SECONDS * 2)
        before, started_at = _processor_seconds(process), time.perf_counter()
        time.sleep(MEASURED_SECONDS)
        used = _processor_seconds(process) - before
        percent = 100 * used / (time.perf_counter() - started_at)
        stop.set()
        for thread in threads:
            thread.join()
    within = percent <= CORE_PERCENT_MAX
    return {"viewers": viewers, "core_percent": round(percent, 1), "within_bound": within}


def _follow(port: int, stop: threading.Event, part: float) -> None:
    """Within the same half second, as after one event."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    headers = {"Tsuzuki-Fragment": "main", "Accept-Encoding": "gzip"}
    stop.wait(part / 2)
    while not stop.wait(REFRESH_SECONDS):
        _get(connection, "/runs", headers)


def _listening(port: int) -> psutil.Process:
    own = psutil.Process()
    return next(
        child
        for child in own.children(recursive=True)
        if any(found.laddr and found.laddr.port == port for found in child.net_connections())
    )


def _processor_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _get(
    connection: http.client.HTTPConnection, path: str, headers: dict[str, str] | None = None
) -> None:
    connection.request("GET", path, headers=headers or {"Accept-Encoding": "gzip"})
    answer = connection.getresponse()
    content = answer.read()
    if answer.status >= 300:
        raise RuntimeError(f"{path}: {answer.status} {content[:300]!r}")
