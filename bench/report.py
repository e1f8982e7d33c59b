"""Report of all benchmarks: every ratio in one table with machine and versions, and a chart of the main ones.

    python -m bench.report [--results bench/results] [--write bench/results]

Reads the results of each benchmark. A ratio is ours divided by the other's: for a rate, higher is better; for a time or
cost, lower. Writes report.md and report.svg, and prints the table.
"""

import argparse
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.engine.plan import MEASURES
from bench.engine.table import Row, read
from bench.report_picture import Bar, draw
from bench.rows import RESULTS
from tsuzuki.wiring.collectors import collector_records

ORDER = (
    "engine",
    "scale",
    *(name for name, one in collector_records().usable.items() if one.bench is not None),
    "web-sqlite",
    "web-postgresql",
    "cli",
)
HEADS = ("benchmark", "measure", "program", "figure", "to", "ratio", "better is")
RATIO = re.compile(r"^(?P<figure>\w+?)_to_(?P<other>\w+)$")
HIGHER = re.compile(r"per_second|rate")
"""Figures for which higher is better."""

BOUND = re.compile(r"floor|bare|git|library|first|tsuzuki")
"""Prefixes of lines that are not peers: a lower bound that does less, or another of our configurations."""

PICTURED = (
    ("engine", "drain of 10,000 on a server", "per_second"),
    ("engine", "drain of 10,000 on SQLite", "per_second"),
    ("engine", "submit to start", "p50_ms"),
    ("engine", "kill -9 in a 60 s job", "seconds"),
    ("scale", "workers x rate", "rate"),
    ("commits", "first collection", "first"),
    ("books", "items in pages", "seconds"),
    ("feeds", "items from fetch to post", "seconds"),
    ("codeindex", "first build", "seconds"),
    ("web", "runs started by 16 clients", "api_rate"),
    ("cli", "program startup", "seconds"),
)
"""Main ratios: benchmark, part of the measure's title, figure."""


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """Our figure divided by another's."""

    benchmark: str
    measure: str
    program: str
    figure: str
    other: str
    value: float

    @property
    def is_higher_better(self) -> bool:
        return bool(HIGHER.search(self.figure))

    @property
    def times_as_good(self) -> float:
        return self.value if self.is_higher_better else 1 / self.value

    def cells(self) -> tuple[str, ...]:
        better = "higher" if self.is_higher_better else "lower"
        value = f"{self.value:.3g}"
        return (
            self.benchmark,
            self.measure,
            self.program,
            self.figure,
            self.other,
            value,
            better,
        )


def ratios_of(benchmark: str, rows: Sequence[Mapping[str, Any]]) -> Iterator[Ratio]:
    """Ratios computed by a benchmark; of several against one bound, the worst."""
    worst: dict[tuple[str, str], Ratio] = {}
    for row in rows:
        for key, value in row.items():
            named = RATIO.match(key)
            if named is None or not isinstance(value, int | float) or value <= 0:
                continue
            ratio = Ratio(
                benchmark=benchmark,
                measure=row["measure"],
                program=row["program"],
                figure=named["figure"],
                other=named["other"].replace("_", " "),
                value=float(value),
            )
            if ratio.other != "bound":
                yield ratio
                continue
            place = (ratio.measure, key)
            if place not in worst or ratio.value > worst[place].value:
                worst[place] = ratio
    yield from worst.values()


def ratios_of_engine(rows: Sequence[Row]) -> Iterator[Ratio]:
    """Ratios of our first line of each measure to every other line."""
    for measure in MEASURES:
        lines = [row for row in rows if row.measure == measure.title]
        for other in lines[1:]:
            yield from _compared(lines[0], other)


def _compared(ours: Row, other: Row) -> Iterator[Ratio]:
    for figure, value in ours.figures.items():
        if value > 0 and other.figures.get(figure, 0) > 0:
            yield Ratio(
                benchmark="engine",
                measure=ours.measure,
                program=ours.peer,
                figure=figure,
                other=other.peer,
                value=value / other.figures[figure],
            )


def collected(folder: Path) -> tuple[list[Ratio], dict[str, dict[str, str]]]:
    """All ratios in order, and the machine of each benchmark that was run."""
    found: list[Ratio] = []
    machines: dict[str, dict[str, str]] = {}
    for name in ORDER:
        file = folder / f"{name}.json"
        if not file.exists():
            continue
        if name == "engine":
            rows, machines[name] = read(file)
            found += ratios_of_engine(rows)
            continue
        kept = json.loads(file.read_text(encoding="utf-8"))
        machines[name] = kept["machine"]
        found += ratios_of(name, kept["rows"])
    return found, machines


def document(ratios: Sequence[Ratio], machines: Mapping[str, Mapping[str, str]]) -> str:
    missing = [name for name in ORDER if name not in machines]
    said = "Each ratio is ours divided by the other's, measured in the same run. Generated by `make bench`."
    lines = ["# Benchmarks", "", said, "", "![main ratios](report.svg)", ""]
    lines += [f"- {name}: {_told(machine)}" for name, machine in machines.items()]
    lines += [f"- not run: {', '.join(missing)}"] if missing else []
    table = [HEADS, tuple("---" for _ in HEADS), *(one.cells() for one in ratios)]
    lines += ["", *(f"| {' | '.join(_escaped(cell) for cell in row)} |" for row in table), ""]
    return "\n".join(lines)


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|")


def _told(machine: Mapping[str, str]) -> str:
    return "; ".join(f"{name}: {value}" for name, value in machine.items())


def bars(ratios: Sequence[Ratio]) -> list[Bar]:
    """Bars for the chart, in the order of `PICTURED`."""
    return [
        Bar(
            group=f"{one.benchmark}: {one.measure}, {one.figure.replace('_', ' ')}",
            label=f"{one.program} to {one.other}",
            times=one.times_as_good,
            is_bound=BOUND.match(one.other) is not None,
        )
        for benchmark, measure, figure in PICTURED
        for one in ratios
        if one.benchmark.startswith(benchmark) and measure in one.measure and one.figure == figure
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument(
        "--write", type=Path, help="folder for the report (default: the folder of the results)"
    )
    options = parser.parse_args()
    ratios, machines = collected(options.results)
    if not machines:
        raise SystemExit(f"{options.results} has no results: run `make bench` first")
    target = options.write or options.results
    target.mkdir(parents=True, exist_ok=True)
    text = document(ratios, machines)
    (target / "report.md").write_text(text, encoding="utf-8")
    picture = draw(
        bars(ratios),
        title="Times as good as the other (logarithmic scale); grey: bare loop or another of our configurations",
    )
    (target / "report.svg").write_text(picture, encoding="utf-8")
    print(text)
    print(f"{target / 'report.md'} and {target / 'report.svg'}")


if __name__ == "__main__":
    main()
