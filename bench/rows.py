"""Shared by all benchmarks: folders, rows of figures, and the JSON file with rows and machine."""

import argparse
import json
import os
import platform
import shutil
import statistics
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"

Row = Mapping[str, Any]
"""`measure`, `program`, and figures by name. A name that ends in `_to_bare` and the like is a ratio."""


@contextmanager
def temporary_folder(prefix: str) -> Iterator[str]:
    path = tempfile.mkdtemp(prefix=prefix)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def medians(figures: Sequence[Row], keys: Iterable[str] | None = None) -> dict[str, Any]:
    """Median of each figure over the rounds."""
    return {key: statistics.median(one[key] for one in figures) for key in keys or figures[0]}


def machine(**more: str) -> dict[str, str]:
    """Machine and versions the figures were measured with."""
    return {
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "kernel": platform.release(),
        "Python": platform.python_version(),
        "Tsuzuki": version("tsuzuki"),
        **more,
    }


def show(row: Row) -> None:
    """One row as a line for people."""
    values = {
        key: round(value, 3) if isinstance(value, float) else value for key, value in row.items()
    }
    head = f"{values.pop('measure'):<58}{values.pop('program'):<26}"
    print(head + "  ".join(f"{key}={value}" for key, value in values.items()), flush=True)


def write(path: Path, rows: Sequence[Row], **more: str) -> None:
    """`more` is said of the machine."""
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = {"machine": machine(**more), "rows": rows}
    path.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")


def run(
    parser: argparse.ArgumentParser,
    measures: Callable[[argparse.Namespace], Iterable[Row]],
    *,
    name: str,
    choices: Sequence[str] = (),
    short: Mapping[str, Any] | None = None,
) -> None:
    """The main of a benchmark that gives row after row: shows each, and writes all of them. With `--short` options have
    the values of `short` as their defaults."""
    if short is not None:
        parser.add_argument("--short", action="store_true", help="smaller numbers, one round")
    if choices:
        parser.add_argument("--only", action="append", choices=choices)
    parser.add_argument("--result", type=Path, default=RESULTS / f"{name}.json")
    options = parser.parse_args()
    if short is not None and options.short:
        parser.set_defaults(**short)
        options = parser.parse_args()
    load = f"{os.getloadavg()[0]:.1f}"
    rows = []
    for row in measures(options):
        show(row)
        rows.append(row)
    write(options.result, rows, **{"load before": load})


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()
