"""`tsuzuki commits chart`: bars that fit, and a picture that is whole and harmless."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from rich.cells import cell_len

from support.workspace import Workspace
from tsuzuki.collectors.commits.commands.bars import bars
from tsuzuki.collectors.commits.commands.svg import svg
from tsuzuki.collectors.commits.service.chart import Chart, chart_of

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = 'A<script>&"\x1b[31m\uffff'


def row(month: str, author: str, commits: int, name: str = "") -> dict[str, object]:
    return {
        "month": month,
        "author_name": name or author,
        "author_email": f"{author}@x",
        "commits": commits,
    }


ROWS = [
    row("2023-12", "ann", 90),
    row("2024-01", "ann", 4),
    row("2024-01", "bob", 9),
    row("2024-03", "ann", 1),
    row("2024-03", "cleo", 2),
    row("2024-03", "dan", 2),
]


def drawn(chart: Chart, *, width: int = 60, may_cut: bool = True) -> list[str]:
    return list(bars(chart, width=width, may_cut=may_cut, is_coloured=False, block="#"))


def test_the_top_authors_of_the_shown_months_and_the_others() -> None:
    chart = chart_of(ROWS, top=2, months=3)
    assert chart.months == ["2024-01", "2024-02", "2024-03"]
    assert [(series.author, list(series.commits)) for series in chart.series] == [
        ("bob", [9, 0, 0]),
        ("ann", [4, 0, 1]),
        ("others", [0, 0, 4]),
    ]
    assert (chart.month_totals, chart.months_before) == ([13, 0, 5], 1)


def test_two_authors_of_one_name_are_told_apart() -> None:
    rows = [
        row("2024-01", "a", 2, "Ann"),
        row("2024-01", "b", 1, "Ann"),
        row("2024-01", "others", 1),
    ]
    labels = [series.author for series in chart_of(rows, top=5, months=1).series]
    assert labels == ["Ann <a@x>", "Ann <b@x>", "others <others@x>"]


def test_a_bar_for_each_month_and_author() -> None:
    lines = drawn(chart_of(ROWS, top=2, months=3), width=30)
    assert [line.split()[-1] for line in lines] == ["9", "4", "-", "1", "4"]
    assert lines[0] == "2024-01  bob     " + "#" * 10 + "  9"
    assert lines[2] == "2024-02  -"


@pytest.mark.parametrize("width", [24, 40, 80, 200])
def test_bars_fit_the_terminal(width: int) -> None:
    chart = chart_of([row("2024-01", "愛" * 60, 123456), row("2024-01", "b", 1)], top=1, months=1)
    assert all(cell_len(line) <= width for line in drawn(chart, width=width))


def test_without_a_terminal_no_name_is_cut() -> None:
    name = "n" * 100
    assert name in drawn(chart_of([row("2024-01", name, 1)], top=1, months=1), may_cut=False)[0]


def test_a_picture_has_one_rect_per_value_each_with_its_title() -> None:
    picture = ET.fromstring(svg(chart_of(ROWS, top=2, months=3)))
    rects = picture.findall(f".//{SVG}rect")
    assert [rect.findtext(f"{SVG}title") for rect in rects] == [
        "2024-01, bob: 9",
        "2024-01, ann: 4",
        "2024-03, ann: 1",
        "2024-03, others: 4",
    ]
    assert all(float(rect.attrib["height"]) > 0 for rect in rects)
    assert picture.findtext(f"{SVG}title") == "Commits per month and author"
    shown = [text.text for text in picture.findall(f"{SVG}text")]
    assert {"bob: 9", "ann: 5", "others: 4"} <= set(shown)


def test_a_name_is_text_in_a_picture_and_nothing_else() -> None:
    text = svg(chart_of([row("2024-01", "a", 1, HOSTILE)], top=1, months=1))
    picture = ET.fromstring(text)
    assert not picture.findall(f".//{SVG}script")
    assert 'A<script>&"\\x1b[31m' in (picture.findtext(f".//{SVG}rect/{SVG}title") or "")
    assert "style=" not in text


def test_drawn_plain_when_piped_and_as_rows_for_a_machine(collected: Workspace) -> None:
    lines = collected.ok("commits", "chart").out.splitlines()
    assert [line.split()[0] for line in lines if line[0] == "2"] == [
        "2024-01",
        "2024-02",
        "2024-03",
        "2024-04",
        "2024-05",
    ]
    assert "\x1b" not in "".join(lines)
    rows = collected.data("commits", "chart", "--top", "1", "--author", "bob@example.org")
    assert rows[0] == {"month": "2024-01", "author": "Bob & Co", "commits": 1}
    assert "older months" in collected.ok("commits", "chart", "--months", "1").err


def test_a_picture_replaces_the_file_in_one_step(collected: Workspace) -> None:
    file = collected.folder / "commits.svg"
    file.write_text("before")
    held = file.open()
    ended = collected.ok("commits", "chart", "--svg", "commits.svg")
    assert ended.out == ""
    assert (held.read(), file.read_text()[:4]) == ("before", "<svg")
    held.close()
    assert not list(collected.folder.glob(".commits.svg*"))
    assert collected.ok("commits", "chart", "--svg", "-").out == file.read_text()
    file.unlink()


@pytest.mark.parametrize(
    ("file", "code", "said"), [("nowhere/x.svg", 74, "output_unwritable"), (".", 2, "not_a_file")]
)
def test_a_place_that_cannot_be_written_is_told(
    collected: Workspace, file: str, code: int, said: str
) -> None:
    before = set(Path(collected.folder).iterdir())
    ended = collected.run("commits", "chart", "--svg", file, "-o", "json")
    assert (ended.code, ended.error["code"], ended.out) == (code, said, "")
    assert ended.error["hint"]
    assert set(Path(collected.folder).iterdir()) == before


def test_nothing_collected_is_said(workspace: Workspace) -> None:
    ended = workspace.ok("commits", "chart")
    assert (ended.out, ended.err.strip()) == ("", "No commits yet.")


def test_people_without_an_address_are_told_apart() -> None:
    rows = [{**row("2024-01", name, 1, name), "author_email": ""} for name in ("Ann", "Bob")]
    labels = [series.author for series in chart_of(rows, top=5, months=1).series]
    assert labels == ["Ann", "Bob"]
