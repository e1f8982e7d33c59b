"""Duration of read-only commands compared with a bare Python process.

    python -m bench.cli [--rounds 10]

Each round starts every program once, in turn; the figure is the median of the rounds, and its ratio to
`python -c pass` of the same run. The first call of all keeps the parsed file and is not counted.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.rows import run, temporary_folder

TSUZUKI = str(Path(sys.executable).with_name("tsuzuki"))
BARE = "python -c pass"
PROGRAMS = {
    BARE: [sys.executable, "-c", "pass"],
    "python -c 'import sqlalchemy'": [sys.executable, "-c", "import sqlalchemy"],
    "tsuzuki --help": [TSUZUKI, "--help"],
    "tsuzuki job ls": [TSUZUKI, "job", "ls"],
    "tsuzuki run ls": [TSUZUKI, "run", "ls"],
    "tsuzuki run show 1": [TSUZUKI, "run", "show", "1"],
    "tsuzuki worker ls (the ordinary way)": [TSUZUKI, "worker", "ls"],
}


def seconds(command: list[str], folder: Path, environ: dict[str, str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, cwd=folder, env=environ, capture_output=True, check=True)
    return time.perf_counter() - started


def measures(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    environ = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    with temporary_folder("tsuzuki-cli-") as name:
        folder, environ["XDG_CACHE_HOME"] = Path(name), f"{name}/cache"
        for words in (["init"], ["job", "run", "hello"], ["job", "ls"], ["worker", "ls"]):
            seconds([TSUZUKI, *words], folder, environ)
        taken: dict[str, list[float]] = {title: [] for title in PROGRAMS}
        for _ in range(options.rounds):
            for title, command in PROGRAMS.items():
                taken[title].append(seconds(command, folder, environ))
    bare = statistics.median(taken[BARE])
    for title, figures in taken.items():
        median = statistics.median(figures)
        ratio = {"seconds_to_bare": median / bare} if title.startswith("tsuzuki") else {}
        yield {"measure": "program startup", "program": title, "seconds": median, **ratio}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    run(parser, measures, name="cli")


if __name__ == "__main__":
    main()
