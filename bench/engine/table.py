"""The figures as one table: for a terminal, or as Markdown from the JSON of an earlier run.

    python -m bench.engine.table bench/results/engine.json [--into docs/discussion/performance.md]

Two comments in the document mark where its table begins and ends.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

FIRST_MARK = "<!-- figures -->"
LAST_MARK = "<!-- end of figures -->"
HEADS = ("measure", "peer", "version", "settings", "figure", "unit", "ratio to us")


@dataclass(frozen=True, kw_only=True)
class Row:
    """`rounds` holds every round's figures, `failure` why there are none."""

    measure: str
    unit: str
    peer: str
    version: str
    settings: str
    rounds: Sequence[dict[str, float]] = ()
    failure: str = ""

    @property
    def figures(self) -> dict[str, float]:
        """The median of each figure over the rounds."""
        return {name: median(one[name] for one in self.rounds) for name in (self.rounds or [{}])[0]}


def cells(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """Rows to print: the measure only where it changes, and the ratio to our first line of that measure."""
    ours: dict[str, Row] = {}
    lines = []
    measure = ""
    for row in rows:
        is_first, measure = row.measure != measure, row.measure
        if row.peer.startswith("tsuzuki"):
            ours.setdefault(measure, row)
        lines.append(
            (
                row.measure if is_first else "",
                row.peer,
                row.version,
                row.settings,
                " / ".join(_figure(value) for value in row.figures.values()) or row.failure,
                row.unit if row.figures else "",
                _ratio(row, ours.get(measure)),
            )
        )
    return lines


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def _ratio(row: Row, ours: Row | None) -> str:
    if ours is None or not row.figures or not ours.figures:
        return ""
    names = [name for name in row.figures if name in ours.figures]
    return " / ".join(f"{row.figures[name] / ours.figures[name]:.2f}" for name in names)


def for_terminal(rows: Sequence[Row]) -> str:
    lines = [HEADS, *cells(rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADS))]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def for_markdown(rows: Sequence[Row]) -> str:
    lines = [HEADS, tuple("---" for _ in HEADS), *cells(rows)]
    escaped = [[text.replace("|", "\\|") for text in line] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in escaped)


def write(path: Path, rows: Sequence[Row], machine: dict[str, str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = {"machine": machine, "rows": [{**asdict(row), "figures": row.figures} for row in rows]}
    path.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")


def read(path: Path) -> tuple[list[Row], dict[str, str]]:
    kept = json.loads(path.read_text(encoding="utf-8"))
    rows = []
    for stored in kept["rows"]:
        stored.pop("figures")
        rows.append(Row(**stored))
    return rows, kept["machine"]


def put_into(document: Path, table: str) -> None:
    """Replace the table between the two marks of a document."""
    text = document.read_text(encoding="utf-8")
    before, _, rest = text.partition(FIRST_MARK)
    _, found, after = rest.partition(LAST_MARK)
    if not found:
        raise SystemExit(f"{document} has no {FIRST_MARK} … {LAST_MARK}")
    document.write_text(f"{before}{FIRST_MARK}\n{table}\n{LAST_MARK}{after}", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("result", type=Path)
    parser.add_argument("--into", type=Path)
    options = parser.parse_args()
    rows, machine = read(options.result)
    told = "; ".join(f"{name}: {value}" for name, value in machine.items())
    table = f"{told}\n\n{for_markdown(rows)}"
    if options.into:
        put_into(options.into, table)
    else:
        print(table)


if __name__ == "__main__":
    main()
