"""Response time of each page, and the server's cost for viewers of live pages.

Every page that has an address of its own is measured, so a new screen is measured with the others, with what a first
visit loads. Live viewers ask for the content of a page whenever they heard of a change: here all of them, every two
seconds.
"""

import http.client
import re
import statistics
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from bench.web.served import server
from tsuzuki.web.pages import screens
from tsuzuki.web.pages.route import PageRoute

BOUND_MS = 100.0
CORE_PERCENT_MAX = 20.0
WEIGHT_MAX_BYTES = 100_000
REQUESTS_MAX = 8
ASKING = (404, 409, 422)
REFRESH_SECONDS = 2.0
MEASURED_SECONDS = 20.0
EXAMPLES = (
    "/runs?state=FAILED&state=TIMED_OUT",
    "/runs?job=job-003&window=24h",
    "/runs?exclude_state=SUCCEEDED&window=all",
    "/runs?window=all",
    "/runs/1000",
    "/runs/1000/compare",
    "/jobs/job-003",
    "/jobs?window=30d&sort=next",
    "/audit?object_type=job",
)


def addresses() -> list[str]:
    """Addresses of all pages that need no prior selection."""
    found = {
        route.path
        for screen in screens.screens()
        for route in screen.routes
        if isinstance(route, PageRoute) and route.methods == {"GET"} and route.right
    }
    return sorted(path for path in found if "{" not in path and path != "/runs/selected")


def measure(url: str, *, rounds: int) -> dict[str, dict[str, Any]]:
    """Per page: response time, processor time of server and database in milliseconds, and bytes of a first visit.
    Templates are compiled before. A page that asks for something first is left out."""
    with server(url) as port:
        process = listening(port)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        paths = [path for path in (*addresses(), *EXAMPLES) if _get(connection, path) is not None]
        return {
            path: timed_page(connection, process, path, rounds) | _weight(connection, path)
            for path in paths
        }


def timed_page(
    connection: http.client.HTTPConnection,
    process: psutil.Process,
    path: str,
    rounds: int,
    *,
    bound_ms: float = BOUND_MS,
) -> dict[str, Any]:
    """Elapsed and processor time of a page. The machine may be busy with other work, so the
    bound is one of processor time."""
    _get(connection, path)  # templates are compiled when they are first used
    clock: list[float] = []
    processor: list[float] = []
    for _ in range(rounds):
        before, started_at = _nanoseconds(process), time.perf_counter()
        _get(connection, path)
        clock.append((time.perf_counter() - started_at) * 1000)
        processor.append((_nanoseconds(process) - before) / 1_000_000)
    p95 = _p95(processor)
    return {
        "p50_ms": round(statistics.median(clock), 1),
        "p95_ms": round(_p95(clock), 1),
        "processor_p95_ms": round(p95, 1),
        "within_bound": p95 <= bound_ms,
    }


def _p95(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=20)[-1]


def _weight(connection: http.client.HTTPConnection, path: str) -> dict[str, Any]:
    """Bytes loaded by a first visit: the page, its files, and the stream of a live page."""
    content = _get(connection, path, {}) or b""
    files = sorted(set(re.findall(r'(?:src|href)="(/static/[^"#]+)"', content.decode())))
    sizes = [len(_get(connection, one) or b"") for one in (path, *files)]
    requests = len(sizes) + 1
    is_small = sum(sizes) <= WEIGHT_MAX_BYTES and requests <= REQUESTS_MAX
    return {"bytes": sum(sizes), "requests": requests, "is_small": is_small}


def _nanoseconds(process: psutil.Process) -> int:
    """Processor time of the server, and of a database server that this process started. One that runs apart, as
    PostgreSQL does here, is not counted: then look at the clock too."""
    own = psutil.Process()
    others = [one for one in own.children(recursive=True) if "postgres" in one.name()]
    return sum(_of_threads(one.pid) for one in (process, *others))


def _of_threads(pid: int) -> int:
    total = 0
    for task in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with suppress(OSError):  # a thread that has just ended
            total += int(task.read_text("ascii").split()[0])
    return total


def live_viewers(url: str, *, viewers: int = 200) -> dict[str, Any]:
    """Processor time of the server, as a share of one core, while viewers follow the list of runs."""
    with server(url) as port:
        process = listening(port)
        stop = threading.Event()
        threads = [
            threading.Thread(target=_follow, args=(port, stop, number / viewers), daemon=True)
            for number in range(viewers)
        ]
        for thread in threads:
            thread.start()
        time.sleep(REFRESH_SECONDS * 2)
        before, started_at = processor_seconds(process), time.perf_counter()
        time.sleep(MEASURED_SECONDS)
        used = processor_seconds(process) - before
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


def listening(port: int) -> psutil.Process:
    own = psutil.Process()
    return next(
        child
        for child in own.children(recursive=True)
        if any(found.laddr and found.laddr.port == port for found in child.net_connections())
    )


def processor_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _get(
    connection: http.client.HTTPConnection, path: str, headers: dict[str, str] | None = None
) -> bytes | None:
    """The response, or None if the page requires a prior selection."""
    connection.request(
        "GET", path, headers={"Accept-Encoding": "gzip"} if headers is None else headers
    )
    answer = connection.getresponse()
    content = answer.read()
    if answer.status in ASKING:
        return None
    if answer.status >= 300:
        raise RuntimeError(f"{path}: {answer.status} {content[:300]!r}")
    return content
