"""Feeds compared with bare loops of the same calls; memory for a large feed; selection of the next item.

    python -m bench.feeds [--rounds 3] [--items 1000] [--feeds 500] [--large 10000] [--processed 1000000]
                          [--only items] [--result bench/results/feeds.json]

The servers of the sandbox run in processes of their own. Rounds alternate, each with new servers and a new database;
a ratio is that of the medians. Prints a table and writes it as JSON.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

from bench.engine.stores import Store, Stores
from bench.rows import medians, run, temporary_folder

THREADS = 16
MEASURES = ("items", "unchanged", "large", "draw")


@contextmanager
def server(*words: str) -> Iterator[str]:
    """The address of a server of the sandbox in its own process."""
    command = [sys.executable, "-W", "ignore", "-m", "bench.feeds.server", *words]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.stdin.close()
        process.wait(60)


def folder() -> AbstractContextManager[str]:
    return temporary_folder("tsuzuki-feeds-")


def measured(module: str, *words: str, count: int) -> dict[str, Any]:
    """The figures of a process, which must have done so much, and the load of the machine before it."""
    load = os.getloadavg()[0]
    command = [sys.executable, "-W", "ignore", "-m", f"bench.feeds.{module}", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}:\n{done.stderr}")
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert figures["count"] == count, figures
    return {**figures, "load": round(load, 1)}


def items(count: int, name: str) -> dict[str, Any]:
    """From the fetch to the post, with servers that have seen nothing yet."""
    with ExitStack() as stack:
        kinds = (("articles", str(count)), ("gemini",), ("mastodon",))
        urls = [stack.enter_context(server(*kind)) for kind in kinds]
        place = stack.enter_context(folder())
        end = [f"{place}/bare.db"] if name == "bare" else [str(count), place]
        return measured(name, "items", *urls, *end, count=count)


def unchanged(count: int, name: str) -> dict[str, Any]:
    with server("feeds", str(count)) as url, folder() as place:
        end = [] if name == "bare" else [place]
        return measured(name, "unchanged", url, str(count), str(THREADS), *end, count=count)


def compared(
    what: str, once: Callable[[int, str], dict[str, Any]], count: int, rounds: int
) -> list[dict[str, Any]]:
    """The bare loop and ours in turn, and the ratio of their medians."""
    taken: dict[str, list[dict[str, Any]]] = {"bare": [], "ours": []}
    for _ in range(rounds):
        for name, all_of_it in taken.items():
            all_of_it.append(once(count, name))
    figures = []
    for name, all_of_it in taken.items():
        median = medians(all_of_it, ("seconds", "cpu_seconds", "memory_mb", "load"))
        figures.append({"measure": f"{count} {what}", "program": name, **median})
    for key in ("seconds", "cpu_seconds"):
        figures[1][f"{key}_to_bare"] = figures[1][key] / figures[0][key]
    pairs = zip(*taken.values(), strict=True)
    figures[1]["to_bare_by_round"] = [
        round(ours["seconds"] / bare["seconds"], 2) for bare, ours in pairs
    ]
    return figures


def large(count: int) -> dict[str, Any]:
    with server("articles", str(count)) as url, folder() as place:
        figures = measured("ours", "large", url, place, count=count)
    figures.pop("count")
    return {"measure": f"first fetch of a feed of {count} items", "program": "ours", **figures}


def draw(processed: int) -> Iterator[dict[str, Any]]:
    waiting = processed // 10
    what = f"draw among {processed} processed and {waiting} waiting items"
    with Stores() as stores:
        for store in (Store.SQLITE, Store.POSTGRESQL):
            with stores.fresh(store) as url:
                words = (url, str(processed), str(waiting))
                figures = measured("draw", *words, count=processed + waiting)
            figures.pop("count")
            yield {"measure": what, "program": f"ours, {store}", **figures}


def measures(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    wanted = options.only or MEASURES
    if "items" in wanted:
        yield from compared("items from fetch to post", items, options.items, options.rounds)
    if "unchanged" in wanted:
        yield from compared("unchanged feeds", unchanged, options.feeds, options.rounds)
    if "large" in wanted:
        yield large(options.large)
    if "draw" in wanted:
        yield from draw(options.processed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--items", type=int, default=1_000)
    parser.add_argument("--feeds", type=int, default=500)
    parser.add_argument("--large", type=int, default=10_000)
    parser.add_argument("--processed", type=int, default=1_000_000)
    short = {"rounds": 1, "items": 200, "feeds": 100, "large": 2_000, "processed": 100_000}
    run(parser, measures, name="feeds", choices=MEASURES, short=short)


if __name__ == "__main__":
    main()
