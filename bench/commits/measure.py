"""Commit collection compared with its lower bounds: git itself, server responses, table size.

    python -m bench.commits.measure [--commits 30000] [--rounds 3] [--pydriller]

Every ratio is taken within one run of this program. Prints figures and writes them to
bench/results/commits.json.
"""

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.commits import history, peer
from bench.rows import run

CACHE = Path(__file__).parents[1] / ".cache"
GIT_LOG = ("log", "-z", "--numstat", "-M", "--diff-merges=first-parent")
NEW_COMMITS = 100
TARGETS = 100
ROWS = 1_000_000


def measures(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    repository = CACHE / f"history-{asked.commits}.git"
    if not repository.is_dir():
        CACHE.mkdir(parents=True, exist_ok=True)
        history.make(repository, asked.commits)
    first = first_collection(repository, asked.rounds)
    yield {"measure": f"first collection of {asked.commits} commits", "program": "ours", **first}
    unchanged = in_a_process("unchanged")
    yield {"measure": "pass over unchanged targets", "program": "ours", **unchanged}
    if not asked.short:
        million = in_a_process("million")
        yield {"measure": "statistics over a million commits", "program": "ours", **million}
    if asked.pydriller:
        beside = peer.compare(repository, CACHE)
        yield {"measure": "first collection, with PyDriller", "program": "ours", **beside}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commits", type=int, default=30_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--pydriller", action="store_true", help="also measure pydriller, in its own venv"
    )
    run(parser, measures, name="commits", short={"rounds": 1, "commits": 3_000})


def first_collection(repository: Path, rounds: int) -> dict[str, Any]:
    """Git alone and the whole collection, alternating; the best of each."""
    git_alone: list[float] = []
    ours: list[dict[str, Any]] = []
    for _ in range(rounds):
        git_alone.append(timed(lambda: git_log(repository, "main")))
        ours.append(in_a_process("collect", str(repository)))
    best = min(one["first_seconds"] for one in ours)
    incremental_git = min(one["incremental_git"] for one in ours)
    incremental = min(one["incremental_seconds"] for one in ours)
    return {
        "git_log_seconds": round(min(git_alone), 2),
        "first_seconds": round(best, 2),
        "first_to_git_log": round(best / min(git_alone), 3),
        "first_rss_mb": max(one["rss_mb"] for one in ours),
        "incremental_git_seconds": round(incremental_git, 3),
        "incremental_seconds": round(incremental, 3),
        "incremental_to_git_log": round(incremental / incremental_git, 2),
    }


def git_log(repository: Path, revision: str) -> None:
    subprocess.run(
        ["git", "-C", str(repository), *GIT_LOG, revision], stdout=subprocess.DEVNULL, check=True
    )


def timed(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def in_a_process(part: str, *arguments: str) -> dict[str, Any]:
    """One part in its own process, so that its memory can be measured."""
    command = [sys.executable, "-W", "ignore", "-m", "bench.commits.parts", part, *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def rss_mb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="tsuzuki-bench-"))


def remove(place: Path) -> None:
    shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    main()
