"""Type checkers understand jobs: examples pass, and planted mistakes are found, each where it is."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("typed_program.py")
CHECKED = [ROOT / "examples" / "library.py", ROOT / "examples" / "crontab" / "reports.py", PROGRAM]

pytestmark = pytest.mark.slow


def planted() -> set[tuple[str, int]]:
    lines = PROGRAM.read_text().splitlines()
    return {(PROGRAM.name, n) for n, line in enumerate(lines, 1) if line.endswith("# wrong")}


def test_mypy_finds_the_mistakes_and_nothing_else(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent"),
            *("--config-file", "", "--cache-dir", str(tmp_path), "--no-error-summary"),
            *map(str, CHECKED),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.findall(r"^.*?([\w]+\.py):(\d+): error", done.stdout, flags=re.MULTILINE)
    assert {(name, int(line)) for name, line in found} == planted(), done.stdout + done.stderr


def test_pyright_finds_the_mistakes_and_nothing_else(tmp_path: Path) -> None:
    config = {
        "include": [str(path) for path in CHECKED],
        "typeCheckingMode": "strict",
        "pythonVersion": "3.11",
        "extraPaths": [str(ROOT / "src")],
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(config))
    done = subprocess.run(
        [
            *(str(Path(sys.executable).with_name("basedpyright")), "--outputjson"),
            *("--pythonpath", sys.executable, "--project", str(tmp_path)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    found = {
        (Path(one["file"]).name, one["range"]["start"]["line"] + 1)
        for one in json.loads(done.stdout)["generalDiagnostics"]
        if one["severity"] == "error"
    }
    assert found == planted(), done.stdout
