"""10,000 items in pages of 40: ours, the bare loop, and optionally dlt; then the cost of a kill.

    python -m bench.books [--rounds 3] [--peer /path/to/python-with-dlt]

Prints a table and writes it as JSON to bench/results/books.json. Rounds alternate; the figure is the median.
"""

import argparse
import json
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from bench.rows import medians, run, temporary_folder

ITEMS = 10_000
PAGE = 40


@contextmanager
def page_server(items: int) -> Iterator[tuple[str, Any]]:
    """A source in its own process: its address, and a function for the number of requests."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.books.page_server", str(items)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None

    def asked() -> int:
        process.stdin.write("count\n")
        process.stdin.flush()
        return int(process.stdout.readline())

    try:
        yield process.stdout.readline().strip(), asked
    finally:
        process.stdin.close()
        process.wait(10)


def folder() -> AbstractContextManager[str]:
    return temporary_folder("tsuzuki-books-")


def measured(command: list[str], items: int = ITEMS) -> dict[str, float]:
    with folder() as place:
        words = [word.replace("{folder}", place) for word in command]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    assert figures["items"] == items, figures
    return figures


def killed_after(pages_of: int, pages: int) -> dict[str, int]:
    """Number of pages requested again, and for the first time, after a run is killed midway."""
    with page_server(pages_of * PAGE) as (url, asked), folder() as place:
        words = [sys.executable, "-m", "bench.books.ours", url, place]
        first = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        while asked() <= pages:  # the next one is prefetched while the last of these is committed
            time.sleep(0.001)
        while count(place) < pages * PAGE:
            time.sleep(0.001)
        first.send_signal(signal.SIGKILL)
        first.wait()
        before = asked()
        stored = count(place)
        subprocess.run(words, stdout=subprocess.DEVNULL, check=True)
        return {
            "pages": pages_of,
            "asked_before_the_kill": before,
            "stored_before_the_kill": stored // PAGE,
            "asked_after_it": asked() - before,
            "books_in_the_end": count(place),
        }


def count(place: str) -> int:
    with sqlite3.connect(f"{place}/tsuzuki.db") as connection:
        return int(connection.execute("SELECT count(*) FROM tsuzuki_books").fetchone()[0])


def measures(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    rounds: dict[str, list[dict[str, float]]] = {}
    with page_server(ITEMS) as (url, _):
        commands = {
            "bare": [sys.executable, "-m", "bench.books.bare", url, "{folder}/bare.db"],
            "ours": [sys.executable, "-m", "bench.books.ours", url, "{folder}"],
        }
        if options.peer:
            peer = str(Path(__file__).with_name("peer.py"))
            commands["dlt"] = [options.peer, peer, url, "{folder}"]
        for _ in range(options.rounds):
            for name, command in commands.items():
                rounds.setdefault(name, []).append(measured(command))
    bare = medians(rounds["bare"])["seconds"]
    for name, all_of_it in rounds.items():
        seconds = medians(all_of_it)["seconds"]
        yield {
            "measure": f"{ITEMS} items in pages of {PAGE}",
            "program": name,
            "items_per_second": round(ITEMS / seconds),
            "seconds": round(seconds, 3),
            **({} if name == "bare" else {"seconds_to_bare": round(seconds / bare, 2)}),
            "memory_mb": round(max(one["memory_mb"] for one in all_of_it)),
        }
    yield {"measure": "pages after a kill", "program": "ours", **killed_after(50, 30)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer", help="Python interpreter with dlt[sqlalchemy]")
    run(parser, measures, name="books", short={"rounds": 1})


if __name__ == "__main__":
    main()
