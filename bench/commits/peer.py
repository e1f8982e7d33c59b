"""PyDriller on the same range, in its own environment, made on demand."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tsuzuki.collectors.commits.git.program import Git
from tsuzuki.collectors.commits.sources.git import GitSource
from tsuzuki.collectors.commits.sources.source import Range
from tsuzuki.model.clock import SystemClock

COMMITS = 1_000
SCRIPT = """
import sys, time
from pydriller import Repository
began, count = time.perf_counter(), 0
for commit in Repository(sys.argv[1], from_commit=sys.argv[2], to_commit=sys.argv[3]).traverse_commits():
    commit.insertions, commit.deletions, commit.author.email
    count += 1
print(count, time.perf_counter() - began)
"""


def compare(repository: Path, cache: Path) -> dict[str, Any]:
    """Seconds per commit of both over the newest commits."""
    python = _environment(cache / "pydriller")
    ids = subprocess.run(
        ["git", "-C", str(repository), "rev-list", f"-{COMMITS + 1}", "--first-parent", "main"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    newest, oldest, before = ids[0], ids[-2], ids[-1]
    told = subprocess.run(
        [str(python), "-c", SCRIPT, str(repository), oldest, newest],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    theirs = float(told[1]) / int(told[0])
    clock = SystemClock()
    git = Git(clock=clock, silence_seconds=600)
    source = GitSource(folder=repository, git=git, page_commits_max=5_000)
    began, count = time.perf_counter(), 0
    for page in source.pages(Range(old=before, new=newest)):
        count += len(page.commits)
    ours = (time.perf_counter() - began) / count
    return {
        "pydriller_commits_per_second": round(1 / theirs),
        "range_commits_per_second": round(1 / ours),
        "seconds_to_pydriller": round(ours / theirs, 3),
    }


def _environment(folder: Path) -> Path:
    python = folder / "bin" / "python"
    if not python.exists():
        uv = Path(sys.executable).parents[2] / ".tools" / "bin" / "uv"
        subprocess.run([str(uv), "venv", "--quiet", str(folder)], check=True)
        command = [str(uv), "pip", "install", "--quiet", "--python", str(python), "pydriller"]
        subprocess.run(command, check=True)
    return python
