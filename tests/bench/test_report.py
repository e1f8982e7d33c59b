"""The report of all benchmarks reads what each of them writes, and leaves out what was not run."""

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
MACHINE = {"processor": "any", "cores": "2", "Python": "3.11"}


def engine_row(peer: str, rate: float) -> dict[str, Any]:
    row = {"measure": "drain of 10,000 on a server", "unit": "jobs/s", "peer": peer}
    figures = {"per_second": rate}
    return {**row, "version": "1", "settings": "", "rounds": [figures], "figures": figures}


def written(folder: Path, **rows: list[dict[str, Any]]) -> None:
    for name, all_of_it in rows.items():
        text = json.dumps({"machine": MACHINE, "rows": all_of_it})
        (folder / f"{name.replace('_', '-')}.json").write_text(text, encoding="utf-8")


def report(folder: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "bench.report", "--results", str(folder)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_every_ratio_is_in_the_table_and_those_that_matter_are_drawn(tmp_path: Path) -> None:
    bare = {"measure": "10000 items in pages of 40", "program": "bare", "seconds": 2.0}
    ours = {**bare, "program": "ours", "seconds": 3.0, "seconds_to_bare": 1.5}
    ours["to_bare_by_round"] = [1.4, 1.6]
    lists = [
        {"measure": "lists beside 10 runs, sqlite", "program": path, "p95_to_bound": ratio}
        for path, ratio in (("/runs", 0.2), ("/jobs", 0.9), ("/events", 0.1))
    ]
    rates = [engine_row("tsuzuki", 1000.0), engine_row("other|one", 250.0)]
    written(tmp_path, books=[bare, ours], web_sqlite=lists, engine=rates)
    done = report(tmp_path)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("|")][2:]
    assert rows == [
        r"| engine | drain of 10,000 on a server | tsuzuki | per_second | other\|one | 4 | higher |",
        "| books | 10000 items in pages of 40 | ours | seconds | bare | 1.5 | lower |",
        "| web-sqlite | lists beside 10 runs, sqlite | /jobs | p95 | bound | 0.9 | lower |",
    ]
    assert "- books: processor: any; cores: 2; Python: 3.11" in text
    assert "- not run: scale, codeindex, commits, feeds, web-postgresql, cli" in text
    assert text in done.stdout
    picture = ET.parse(tmp_path / "report.svg")
    bars = picture.findall(".//{*}rect/{*}title")
    assert [bar.text for bar in bars] == ["tsuzuki to other|one: 4", "ours to bare: 0.67"]


def test_without_results_it_says_what_to_run(tmp_path: Path) -> None:
    done = report(tmp_path)
    assert done.returncode == 1
    assert "run `make bench` first" in done.stderr
