"""The benchmark still runs and knows its peers. How fast anything is, no test says."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.full
@pytest.mark.timeout(600)
def test_the_benchmark_in_its_smallest_form_gives_a_figure_for_every_line(tmp_path: Path) -> None:
    result = tmp_path / "engine.json"
    ours = ["--short", "--peers=floor", "--stores=SQLite", "--jobs=20", f"--result={result}"]
    command = [sys.executable, "-W", "ignore", "-m", "bench.engine.run", *ours]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads(result.read_text(encoding="utf-8"))["rows"]
    assert {row["peer"].split()[0] for row in rows} == {"tsuzuki", "floor"}
    assert all(row["figures"] and min(row["figures"].values()) > 0 for row in rows)
    assert all(row["peer"] in done.stdout for row in rows)


def test_every_peer_has_a_program_and_a_lock() -> None:
    programs = {path.stem for path in (ROOT / "bench" / "engine" / "peers").glob("*.py")}
    locks = {path.stem for path in (ROOT / "requirements" / "bench").glob("*.txt")}
    wanted = {path.stem for path in (ROOT / "requirements" / "bench").glob("*.in")}
    assert locks == wanted
    assert programs - {"__init__", "protocol"} == locks - {"codeindex"}
