"""One measure of the code index in a process of its own; prints its figures as a line of JSON.

python -m bench.codeindex.ours build|definitions <root> <folder>
python -m bench.codeindex.ours unchanged <root> <folder> <rounds>
python -m bench.codeindex.ours worktree <root> <folder> <place of the worktree>
python -m bench.codeindex.ours lookups <folder> <symbols>
python -m bench.codeindex.ours answers <root> <folder>
python -m bench.codeindex.ours references <root> <folder>
python -m bench.codeindex.ours watch <root> <folder>
python -m bench.codeindex.ours questions <root> <folder>
python -m bench.codeindex.ours mcp <root> <folder>
"""

import os
import random
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.codeindex.million import filled
from bench.codeindex.references import reference_times
from bench.codeindex.stdio_client import StdioClient
from bench.feeds.figures import processor_seconds, say
from tsuzuki.collectors.codeindex.builds.job import BuildJob, BuildStatus
from tsuzuki.collectors.codeindex.index_file import FOLDER_VARIABLE
from tsuzuki.collectors.codeindex.parsing import pool as parse_pool
from tsuzuki.collectors.codeindex.queries import lookups
from tsuzuki.collectors.codeindex.service.answers import CodeAnswers
from tsuzuki.collectors.codeindex.service.builds import Builds
from tsuzuki.collectors.codeindex.service.watcher import Watcher, WatchEvent, WatchState

WAIT_SECONDS = 3_600.0
LOOKUPS = 5_000
SUBSTRINGS = 500
EDITS = 20
SEARCHED = "handler"
QUESTIONS = 20


def builds_in(folder: str) -> Builds:
    return Builds(environ={FOLDER_VARIABLE: folder})


def built(builds: Builds, root: Path) -> BuildJob:
    started = builds.start(root)
    job = builds.jobs.wait(started.id, WAIT_SECONDS)
    assert job is not None
    assert job.status is BuildStatus.COMPLETED, job
    return job


def timed(act: Callable[[], object]) -> float:
    started = time.perf_counter()
    act()
    return time.perf_counter() - started


def build(root: str, folder: str) -> dict[str, Any]:
    """A first build."""
    builds = builds_in(folder)
    seconds = timed(lambda: built(builds, Path(root)))
    status = builds.status(Path(root))
    assert status.stats is not None
    files, symbols = sum(status.outcomes.values()), status.stats.total
    return {"seconds": seconds, "files": files, "symbols": symbols}


def definitions(root: str, folder: str) -> dict[str, Any]:
    """Build definitions only: the workers skip the patterns that find references."""
    parse_pool._PROGRAM = (  # noqa: SLF001 -- other workers for this process alone
        "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
        "from bench.codeindex.definitions_worker import main; main()"
    )
    return build(root, folder)


def unchanged(root: str, folder: str, rounds: str) -> dict[str, Any]:
    """Builds that find nothing to do, and `git status`, in turn."""
    builds, tree = builds_in(folder), Path(root)
    built(builds, tree)
    git_status = ("git", "-C", root, "status", "--porcelain")
    ours, git = [], []
    for _ in range(int(rounds)):
        git.append(timed(lambda: subprocess.run(git_status, check=True, capture_output=True)))
        ours.append(timed(lambda: built(builds, tree)))
    return {
        "seconds": statistics.median(ours),
        "git_status_seconds": statistics.median(git),
        "to_git_status": statistics.median(ours) / statistics.median(git),
    }


def worktree(root: str, folder: str, place: str) -> dict[str, Any]:
    """From the start of the first build of a new worktree to the first answer about it."""
    builds = builds_in(folder)
    first = timed(lambda: built(builds, Path(root)))
    git = ("git", "-C", root, "worktree")
    subprocess.run([*git, "add", "--quiet", "--detach", place], check=True)
    try:
        answers = CodeAnswers(Path(place), cwd=Path(place), folder=Path(folder))
        building = timed(lambda: built(builds, Path(place)))
        asking = timed(lambda: answers.search(SEARCHED))
    finally:
        subprocess.run([*git, "remove", "--force", place], check=True)
    return {
        "seconds": building + asking,
        "build_seconds": building,
        "search_seconds": asking,
        "first_build_seconds": first,
    }


def lookup_times(folder: str, symbols: str) -> dict[str, Any]:
    """Definitions by their whole name, and names by a piece of them."""
    chance = random.Random(5)
    with filled(Path(folder), int(symbols)) as (index, names):
        connection = index.connection

        def by_name() -> object:
            return lookups.symbols_named(connection, [chance.choice(names)])

        def by_piece() -> object:
            name = chance.choice(names)
            at = chance.randrange(len(name) - 5)
            return lookups.names_with_substring(connection, name[at : at + 6], limit=100)

        return {
            "symbols": int(symbols),
            **_times_ms("name", by_name, LOOKUPS),
            **_times_ms("substring", by_piece, SUBSTRINGS),
        }


def _times_ms(name: str, act: Callable[[], object], times: int) -> dict[str, float]:
    """On a busy machine only the processor's time can be compared."""
    act()
    walls, cpus = [], []
    for _ in range(times):
        cpu = time.process_time()
        walls.append(1000 * timed(act))
        cpus.append(1000 * (time.process_time() - cpu))
    at = times * 99 // 100
    return {f"{name}_p99_ms": sorted(walls)[at], f"{name}_cpu_p99_ms": sorted(cpus)[at]}


def answer_times(root: str, folder: str) -> dict[str, Any]:
    """Time until a build returns its ID, and until its status is returned during the build."""
    asking, starting = builds_in(folder), builds_in(folder)
    start_seconds = timed(lambda: starting.start(Path(root)))
    status_seconds = []
    while True:
        status_seconds.append(timed(lambda: asking.status(Path(root))))
        status = asking.status(Path(root))
        if status.job is None or status.job.status is not BuildStatus.RUNNING:
            break
    detached = builds_in(f"{folder}/detached")
    detached_seconds = timed(lambda: detached.start_detached(Path(root)))
    while (job := detached.status(Path(root)).job) and job.status is BuildStatus.RUNNING:
        time.sleep(0.1)
    return {
        "start_seconds": start_seconds,
        "start_background_seconds": detached_seconds,
        "status_seconds_max": max(status_seconds),
        "asked": len(status_seconds),
    }


def references(root: str, folder: str) -> dict[str, Any]:
    """Answers about random names, from a first build; and the size of its index."""
    built(builds_in(folder), Path(root))
    index_bytes = sum(one.stat().st_size for one in Path(folder).iterdir())
    return {"index_mb": index_bytes / 2**20, **reference_times(Path(root), Path(folder))}


def watch_times(root: str, folder: str) -> dict[str, Any]:
    """From the save of a file to the completed build that has it."""
    tree, builds = Path(root), builds_in(folder)
    saved = tree / "bench_watched.py"
    built_at: list[float] = []
    is_built = threading.Event()

    def on_event(event: WatchEvent) -> None:
        if event.state is WatchState.WATCHING and event.job is not None:
            built_at.append(time.perf_counter())
            is_built.set()

    seconds = []
    try:
        with Watcher(tree, builds=builds, on_event=on_event):
            is_built.wait(WAIT_SECONDS)
            for number in range(EDITS):
                is_built.clear()
                started = time.perf_counter()
                saved.write_text(f"def edit_{number}():\n    pass\n", encoding="utf-8")
                is_built.wait(WAIT_SECONDS)
                seconds.append(built_at[-1] - started)
                time.sleep(0.3)
    finally:
        saved.unlink(missing_ok=True)
    return {"save_to_index_seconds": statistics.median(seconds), "worst_seconds": max(seconds)}


def mcp_times(root: str, folder: str) -> dict[str, Any]:
    """A server on stdio: from the start of its process to the list of its tools, on a tree that is not indexed;
    then the start of a build, and its status while it runs."""
    environ = {**os.environ, FOLDER_VARIABLE: folder}
    started = time.perf_counter()
    server = subprocess.Popen(
        [sys.executable, "-m", "tsuzuki", "mcp", "--root", root],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environ,
        text=True,
    )
    with server:
        client = StdioClient(server)
        client.shake_hands()
        client.request("tools/list", {})
        listed = time.perf_counter() - started
        build_seconds = timed(lambda: client.call("code_index_build"))
        status_seconds = []
        while True:
            before = time.perf_counter()
            told = client.call("code_index_status")["structuredContent"]
            status_seconds.append(time.perf_counter() - before)
            if told["job"]["status"] != "running":
                break
        assert server.stdin is not None
        server.stdin.close()
    return {
        "tools_list_seconds": listed,
        "build_answer_seconds": build_seconds,
        "status_seconds_max": max(status_seconds),
        "asked": len(status_seconds),
    }


def question_times(root: str, folder: str) -> dict[str, Any]:
    """A definition and its references, asked in turn with a walk through the tree and with what a watcher knows; and
    right after a file was saved."""
    tree, builds = Path(root), builds_in(folder)
    built(builds, tree)
    is_watching = threading.Event()

    def on_event(event: WatchEvent) -> None:
        if event.state is WatchState.WATCHING:
            is_watching.set()

    with Watcher(tree, builds=builds, on_event=on_event) as watcher:
        assert is_watching.wait(WAIT_SECONDS)
        walking = CodeAnswers(tree, cwd=tree, folder=Path(folder))
        watching = CodeAnswers(tree, cwd=tree, folder=Path(folder), live=watcher.live)
        saved = tree / "saved.py"

        def ask_after_save(answers: CodeAnswers) -> object:
            saved.write_text(f"def saved():\n    return {time.perf_counter()}\n")
            return answers.search("saved", lines=False)

        questions: dict[str, Callable[[CodeAnswers], object]] = {
            "name": lambda answers: answers.search("compute77", lines=False),
            "references": lambda answers: answers.references("compute77"),
            "after_save": ask_after_save,
        }
        try:
            return {
                key: figure
                for name, ask in questions.items()
                for key, figure in _walked_and_watched(name, ask, walking, watching).items()
            }
        finally:
            saved.unlink()


def _walked_and_watched(
    name: str, ask: Callable[[CodeAnswers], object], walking: CodeAnswers, watching: CodeAnswers
) -> dict[str, float]:
    ask(watching)
    walked, watched = [], []
    for _ in range(QUESTIONS):
        walked.append(1000 * timed(lambda: ask(walking)))
        watched.append(1000 * timed(lambda: ask(watching)))
    walk_ms, ms = statistics.median(walked), statistics.median(watched)
    return {f"{name}_ms": ms, f"{name}_walk_ms": walk_ms, f"{name}_to_walk": ms / walk_ms}


MEASURES: dict[str, Callable[..., dict[str, Any]]] = {
    "build": build,
    "definitions": definitions,
    "unchanged": unchanged,
    "worktree": worktree,
    "lookups": lookup_times,
    "answers": answer_times,
    "references": references,
    "watch": watch_times,
    "mcp": mcp_times,
    "questions": question_times,
}


def main() -> None:
    name, *words = sys.argv[1:]
    figures = MEASURES[name](*words)
    say(**figures, cpu_seconds=processor_seconds())


if __name__ == "__main__":
    main()
