"""Response time of each list, count and overview over HTTP while an engine drains runs."""

import statistics
import sys
import time
from typing import Any

from bench.web.draining import beside
from bench.web.requests import Asked, asked
from bench.web.served import Client, server, with_cursor

BOUND_MS = 50.0


def measure(
    url: str, *, rounds: int, drained_per_second: int, only: str = ""
) -> dict[str, dict[str, Any]]:
    """Milliseconds by request: median and 95th percentile. Rounds go through all requests in turn."""
    wanted = [one for one in asked() if only in one.name]
    with server(url) as port, beside(url, drained_per_second) as drained:
        client = Client(port)
        paths = {one: _path_of(client, one) for one in wanted}
        times: dict[Asked, list[float]] = {one: [] for one in wanted}
        for _ in range(rounds):
            for one, path in paths.items():
                started_at = time.perf_counter()
                client.get(path)
                times[one].append((time.perf_counter() - started_at) * 1000)
    found = {one.name: _figures(taken) for one, taken in times.items()}
    print(f"runs drained during the measurement: {drained}", file=sys.stderr)
    return found


def _path_of(client: Client, one: Asked) -> str:
    """With the cursor of the page that is asked for."""
    path = one.path
    for _ in range(one.deep):
        cursor = client.get(path)["next_cursor"]
        if cursor is None:
            break
        path = with_cursor(one.path, cursor)
    return path


def _figures(taken: list[float]) -> dict[str, Any]:
    """Figures of a read: median, p95 and maximum. The maximum is usually the first request, which fills the caches.
    Percentiles never exceed it."""
    inclusive = statistics.quantiles(taken, n=20, method="inclusive") if len(taken) > 1 else taken
    p95 = inclusive[-1]
    return {
        "p50_ms": round(statistics.median(taken), 1),
        "p95_ms": round(p95, 1),
        "max_ms": round(max(taken), 1),
        "within_bound": p95 <= BOUND_MS,
    }
