"""The benchmark of feeds still runs and does what it says. How fast anything is, no test says."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.full
@pytest.mark.timeout(300)
def test_the_benchmark_of_feeds_in_its_smallest_form_gives_every_figure(tmp_path: Path) -> None:
    result = tmp_path / "feeds.json"
    smallest = ["--rounds=1", "--items=3", "--feeds=3", "--large=20", "--processed=2000"]
    command = [sys.executable, "-W", "ignore", "-m", "bench.feeds", *smallest, f"--result={result}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads(result.read_text(encoding="utf-8"))["rows"]
    programs = ["bare", "ours", "bare", "ours", "ours", "ours, SQLite", "ours, PostgreSQL"]
    assert [row["program"] for row in rows] == programs
    assert all(row["measure"] in done.stdout for row in rows)
    assert all(row["seconds_to_bare"] > 0 for row in (rows[1], rows[3]))
