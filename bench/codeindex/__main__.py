"""Code index benchmark: comparison with universal-ctags, code-index-mcp and `git status`; memory, lookups, answers.

    python -m bench.codeindex [--tree PATH] [--rounds 3] [--files 100000] [--symbols 1000000]
                              [--only cold] [--result bench/results/codeindex.json]

Without a tree it is Django's source distribution, from the package registry. Rounds alternate, each with a new index;
a ratio is that of the medians. Prints a table and writes it as JSON. Needs universal-ctags for the ratios to it.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from bench.codeindex import trees
from bench.codeindex.process_tree import run_and_sum
from bench.engine.peer_folders import NotInstalled, interpreter
from bench.rows import medians, run, temporary_folder

PEER = Path(__file__).with_name("peer.py")
MEASURES = (
    *("cold", "peer", "unchanged", "worktree", "answers", "references", "watch", "mcp"),
    *("questions", "lookups", "memory"),
)
QUESTION_FILES_MAX = 20_000
UNCHANGED_ROUNDS = "15"


def folder() -> AbstractContextManager[str]:
    return temporary_folder("tsuzuki-codeindex-")


def measured(*command: str) -> dict[str, Any]:
    """The figures of a process, the memory of all its processes together, and the load before it."""
    load = os.getloadavg()[0]
    output, memory_mb = run_and_sum(command)
    figures: dict[str, Any] = json.loads(output.splitlines()[-1])
    return {**figures, "memory_mb": memory_mb, "load": round(load, 1)}


def ours(name: str, *words: str) -> dict[str, Any]:
    return measured(sys.executable, "-W", "ignore", "-m", "bench.codeindex.ours", name, *words)


def cold_build(program: str, tree: str) -> dict[str, Any]:
    with folder() as place:
        if program == "ctags":
            module = "bench.codeindex.ctags_build"
            return measured(sys.executable, "-m", module, tree, f"{place}/tags.db")
        return ours("build" if program == "references" else program, tree, place)


def cold(tree: str, rounds: int) -> Iterator[dict[str, Any]]:
    """ctags and ours in turn: definitions alone, and with references."""
    taken: dict[str, list[dict[str, Any]]] = {"ctags": [], "definitions": [], "references": []}
    if not _has_ctags():
        del taken["ctags"]
        print("universal-ctags is not installed; skipping the comparison", file=sys.stderr)
    for _ in range(rounds):
        for program, all_of_it in taken.items():
            all_of_it.append(cold_build(program, tree))
    for program, all_of_it in taken.items():
        figures = medians(all_of_it)
        if "ctags" in taken and program != "ctags":
            bare = medians(taken["ctags"])
            for key in ("seconds", "cpu_seconds"):
                figures[f"{key}_to_ctags"] = figures[key] / bare[key]
        yield {"measure": "first build", "program": program, **figures}


def peer(tree: str) -> Iterator[dict[str, Any]]:
    """code-index-mcp once, which takes long, between two builds of ours."""
    try:
        python = str(interpreter("codeindex"))
    except NotInstalled as problem:
        print(f"skipping code-index-mcp: {problem}", file=sys.stderr)
        return
    before = cold_build("references", tree)
    with folder() as place:
        theirs = measured(python, str(PEER), tree, f"{place}/peer/index.db")
    both = medians([before, cold_build("references", tree)])
    yield {"measure": "first build", "program": "code-index-mcp", **theirs}
    ratio = {"seconds_to_code_index_mcp": both["seconds"] / theirs["seconds"]}
    yield {"measure": "first build", "program": "references", **both, **ratio}


def single(name: str, tree: str) -> dict[str, Any]:
    with folder() as place:
        words = {"unchanged": [UNCHANGED_ROUNDS], "worktree": [f"{place}/second"]}.get(name, [])
        figures = ours(name, tree, f"{place}/indexes", *words)
    titles = {
        "unchanged": "build without a change",
        "worktree": "second worktree, built and searched",
        "answers": "start of a build and status while it runs",
        "references": "references of random names",
        "watch": "time from save to index",
        "mcp": "MCP server: start, build and status",
    }
    return {"measure": titles[name], "program": "ours", **figures}


def measures(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    wanted = options.only or MEASURES
    if set(wanted) - {"questions", "lookups", "memory"}:
        tree = str(trees.copy_of(options.tree) if options.tree else trees.django())
    if "cold" in wanted:
        yield from cold(tree, options.rounds)
    if "peer" in wanted:
        yield from peer(tree)
    for name in ("unchanged", "worktree", "answers", "references", "watch", "mcp"):
        if name in wanted:
            yield single(name, tree)
    if "questions" in wanted:
        count = min(options.files, QUESTION_FILES_MAX)
        with folder() as place:
            figures = ours("questions", str(trees.generated(count)), place)
        yield {"measure": f"questions about {count} files", "program": "ours", **figures}
    if "lookups" in wanted:
        with folder() as place:
            figures = ours("lookups", place, str(options.symbols))
        yield {"measure": f"lookups among {options.symbols} symbols", "program": "ours", **figures}
    if "memory" in wanted:
        large = str(trees.generated(options.files))
        with folder() as place:
            figures = ours("build", large, place)
        title = f"first build of {options.files} files"
        yield {"measure": title, "program": "ours", **figures}


def _has_ctags() -> bool:
    if shutil.which("ctags") is None:
        return False
    said = subprocess.run(["ctags", "--version"], capture_output=True, text=True, check=False)
    return "Universal Ctags" in said.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tree", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--symbols", type=int, default=1_000_000)
    short = {"rounds": 1, "files": 10_000, "symbols": 100_000}
    run(parser, measures, name="codeindex", choices=MEASURES, short=short)


if __name__ == "__main__":
    main()
