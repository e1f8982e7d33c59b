"""Run every benchmark in turn (engine, installed collectors, hosts), then write the report.

    python -m bench [--short] [--only NAME]

A benchmark that fails is left out of the report, and this program ends with 1.
"""

import argparse
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tsuzuki.wiring.collectors import collector_records


class Benchmark(NamedTuple):
    """Arguments of a Python: a module with its options, and the options of its short form."""

    name: str
    module: Sequence[str]
    short: Sequence[str] = ("--short",)


def benchmarks() -> Iterator[Benchmark]:
    yield Benchmark("engine", ["bench.engine.run"])
    for name, collector in collector_records().usable.items():
        if collector.bench is not None:
            yield Benchmark(name, [collector.bench])
    for database in ("sqlite", "postgresql"):
        words = ["bench.web", "--database", database]
        yield Benchmark(f"web-{database}", words, ["--runs", "100000", "--rounds", "5"])
    yield Benchmark("cli", ["bench.cli"], ["--rounds", "3"])
    yield Benchmark("scale", ["bench.engine.scale"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="smaller numbers and one round")
    parser.add_argument("--only", action="append", choices=[one.name for one in benchmarks()])
    options = parser.parse_args()
    failed = []
    for one in benchmarks():
        if options.only and one.name not in options.only:
            continue
        print(f"== {one.name}", file=sys.stderr)
        if _run(*one.module, *(one.short if options.short else ())) != 0:
            failed.append(one.name)
    _run("bench.report")
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


def _run(*words: str) -> int:
    command = [sys.executable, "-W", "ignore", "-m", *words]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    main()
