"""Lists and counts with many stored runs, and runs started over HTTP, on SQLite or PostgreSQL.

    python -m bench.web [--database sqlite] [--runs 1000000] [--rounds 20] [--drain 500] [--only lists]
                        [--named WORDS] [--folder FOLDER] [--result bench/results/web.json]

`lists` measures every list, count and overview while an engine drains runs; `--named` selects those whose name contains
the words. `pages` measures every page, `live` 200 viewers of a live page, `log` the page of a run with a million log
lines, `submit` 16 clients that start runs compared with the library's own submit, `streams` open streams. With
`--folder`, the filled SQLite file is kept and reused. Prints a table (elapsed time at p50 and p95, processor time at
p95) and writes JSON.
"""

import argparse
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.engine.processes import database
from bench.rows import RESULTS, write
from bench.web import lists, log, pages, streams, submit
from bench.web.fill import fill
from tsuzuki.wiring.application import opened

MEASURES = ("lists", "pages", "live", "log", "submit", "streams")


@contextmanager
def filled(name: str, runs: int, folder: Path | None) -> Iterator[str]:
    """URL of a database with `runs` runs."""
    if folder is not None and name == "sqlite":
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"runs-{runs}.db"
        is_filled = file.exists()
        url = f"sqlite:///{file.absolute()}"
        _migrate(url)
        if not is_filled:
            fill(url, runs)
        yield url
        return
    with database(name) as url:
        _migrate(url)
        fill(url, runs)
        yield url


def _migrate(url: str) -> None:
    with (
        tempfile.TemporaryDirectory() as empty,
        opened(database_url=url, environ={}, cwd=Path(empty)),
    ):
        pass


def beside_many(url: str, wanted: Sequence[str], words: argparse.Namespace) -> dict[str, Any]:
    """Measure everything that needs many stored runs, in one database, because filling it takes minutes. Lists come
    last: the drain during their measurement leaves hours that no leader has added up."""
    found: dict[str, Any] = {}
    if "pages" in wanted:
        found["pages"] = pages.measure(url, rounds=words.rounds)
    if "live" in wanted:
        found["live pages"] = pages.live_viewers(url)
    if "lists" in wanted:
        found["lists"] = lists.measure(
            url, rounds=words.rounds, drained_per_second=words.drain, only=words.named
        )
    return found


def measured(words: argparse.Namespace) -> dict[str, Any]:
    wanted = words.only or MEASURES
    found: dict[str, Any] = {"database": words.database, "runs": words.runs}
    found["load before"] = round(os.getloadavg()[0], 1)
    if {"lists", "pages", "live"} & set(wanted):
        with filled(words.database, words.runs, words.folder) as url:
            found |= beside_many(url, wanted, words)
    if "log" in wanted:
        with filled(words.database, 100, None) as url:
            found["log"] = log.measure(url, lines=words.lines, rounds=words.rounds)
    if "submit" in wanted:
        with database(words.database) as url:
            found["submit"] = submit.measure(url, runs=words.submitted, rounds=3)
    if "streams" in wanted:
        with database(words.database) as url:
            found["streams"] = streams.measure(database_url=url)
    return found


def show(found: dict[str, Any]) -> None:
    timed = {**found.get("lists", {}), **found.get("pages", {}), **found.get("log", {})}
    slowest_first = sorted(timed.items(), key=lambda one: -one[1]["p95_ms"])
    for name, figures in slowest_first:
        mark = " " if figures["within_bound"] and figures.get("is_small", True) else "!"
        processor = figures.get("processor_p95_ms", 0.0)
        weight = f"  {figures['bytes'] / 1000:.0f} kB" if "bytes" in figures else ""
        print(
            f"{mark} {figures['p50_ms']:8.1f} {figures['p95_ms']:8.1f} {processor:8.1f}  {name}{weight}"
        )
    for name in ("live pages", "submit", "streams"):
        if found.get(name):
            print(f"{name}: {json.dumps(found[name])}")


def rows(found: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Result rows with their ratios."""
    extent = f"with {found['runs']} runs, {found['database']}"
    for kind, bound in (("lists", lists.BOUND_MS), ("pages", pages.BOUND_MS)):
        for name, figures in found.get(kind, {}).items():
            ratio = {"p95_to_bound": round(figures["p95_ms"] / bound, 3)}
            yield {"measure": f"{kind} {extent}", "program": name, **figures, **ratio}
    if "submit" in found:
        submitted = found["submit"]
        ratios = {
            "api_rate_to_library": submitted["ratio"],
            "api_with_token_rate_to_library": submitted["ratio_with_token"],
        }
        used = {f"{way}_us": time for way, time in submitted["processor_us"].items()}
        what = f"runs started by 16 clients, {found['database']}"
        yield {"measure": what, "program": "API", **submitted["per_second"], **ratios, **used}
    for kind in ("live pages", "streams"):
        if found.get(kind):
            yield {"measure": kind, "program": found["database"], **found[kind]}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.web")
    parser.add_argument("--database", choices=["sqlite", "postgresql"], default="sqlite")
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument(
        "--drain", type=int, default=500, help="runs per second to drain during the measurement"
    )
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--submitted", type=int, default=3_200)
    parser.add_argument("--only", choices=MEASURES, action="append")
    parser.add_argument("--named", default="")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--result", type=Path)
    words = parser.parse_args()
    found = measured(words)
    show(found)
    result = words.result or RESULTS / f"web-{words.database}.json"
    write(result, [*rows(found)], **{"load before": str(found["load before"])})


if __name__ == "__main__":
    main()
