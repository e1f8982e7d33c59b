"""Exported commits as the text of a file: CSV, JSON, or a JSON object on each line. The text comes in pieces."""

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from io import StringIO
from typing import Any

from tsuzuki.collectors.commits.service.chart import Chart
from tsuzuki.model.visible_text import csv_cell

COLUMNS = (
    "project",
    "project_id",
    "branch_name",
    "sha",
    "author_name",
    "author_email",
    "committed_date_utc",
    "additions",
    "deletions",
    "is_merge",
    "parents",
    "person",
    "teams",
)
PIECE_CHARACTERS = 65_536


class ExportFormat(StrEnum):
    """As what commits are exported."""

    CSV = "csv"
    JSON = "json"
    JSONL = "jsonl"


def export_text(rows: Iterable[Mapping[str, Any]], form: ExportFormat) -> Iterator[str]:
    """The rows of `Reports.export` as text."""
    match form:
        case ExportFormat.CSV:
            return _csv(rows)
        case ExportFormat.JSON:
            return _json(rows)
        case ExportFormat.JSONL:
            return _pieces(f"{_object(row)}\n" for row in rows)


def chart_text(chart: Chart) -> str:
    """The numbers of a chart as CSV: a row for each month and a column for each author."""
    buffer = StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["month", *(csv_cell(series.author) for series in chart.series)])
    columns = [series.commits for series in chart.series]
    for month, *counts in zip(chart.months, *columns, strict=True):
        writer.writerow([month, *counts])
    return buffer.getvalue()


def _csv(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    buffer = StringIO(newline="")
    writer = csv.DictWriter(buffer, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow(_csv_row(row))
        if buffer.tell() >= PIECE_CHARACTERS:
            yield buffer.getvalue()
            buffer.seek(0)
            buffer.truncate()
    yield buffer.getvalue()


def _json(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    before = "["
    for row in rows:
        yield f"{before}{_object(row)}"
        before = ",\n"
    yield "[]\n" if before == "[" else "]\n"


def _object(row: Mapping[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False)


def _pieces(lines: Iterable[str]) -> Iterator[str]:
    held: list[str] = []
    length = 0
    for line in lines:
        held.append(line)
        length += len(line)
        if length >= PIECE_CHARACTERS:
            yield "".join(held)
            held, length = [], 0
    yield "".join(held)


def _csv_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Teams separated by semicolons; true, false or nothing for `is_merge`."""
    is_merge = row["is_merge"]
    return {
        **{key: csv_cell(value) for key, value in row.items()},
        "is_merge": "" if is_merge is None else str(is_merge).lower(),
        "teams": csv_cell(";".join(row["teams"])),
    }
