"""The chart of commits: stacked bars of each month by author, the same as a table and as CSV.

Who and what counts (merges, bots, joined identities, generated code) stands in the address."""

from calendar import monthrange
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Query
from pydantic import Field

from tsuzuki.collectors.commits.api.commits import commits_service
from tsuzuki.collectors.commits.api.reports import ChartQuery, LeftOutOut
from tsuzuki.collectors.commits.service.chart import Chart, chart_of
from tsuzuki.collectors.commits.service.statistics import Dimension
from tsuzuki.model.access import Right
from tsuzuki.model.errors import TsuzukiError
from tsuzuki.web.answers import Model
from tsuzuki.web.pages.context import Page, PageContext
from tsuzuki.web.pages.route import Screen
from tsuzuki.web.problems import Problem

screen = Screen()

AUTHORS_LISTED = 50


class MonthlyQuery(ChartQuery):
    top: int = Field(10, ge=1, le=10)
    months: int = Field(24, ge=1, le=120)


class MonthOut(Model):
    """A month with its first and last day, and the commits of each series in it."""

    month: str
    since: str
    until: str
    total: int
    commits: list[int]


class ChartSeries(Model):
    """`author` is what is shown, `filter` the name or address that narrows the chart; null for the others."""

    author: str
    filter: str | None
    commits: int


class AuthorOut(Model):
    name: str
    filter: str
    commits: int
    additions: int
    deletions: int


class MonthlyView(Model):
    """`csv_path` and `export_path` are files with the same filters: the table, and every commit."""

    months: list[MonthOut]
    series: list[ChartSeries]
    authors: list[AuthorOut]
    author_count: int
    total: dict[str, int]
    months_before: int
    teams: list[str]
    left_out: LeftOutOut | None
    filters: dict[str, Any]
    csv_path: str
    export_path: str
    problem: Problem | None = None


@screen.page("/commits/chart", right=Right.COLLECTORS_READ, template="screens/commits_chart.html")
def chart_page(context: Page, query: Annotated[MonthlyQuery, Query()]) -> MonthlyView:
    try:
        found = commits_service(context).reports.statistics(
            (Dimension.MONTH, Dimension.AUTHOR), query.selection()
        )
    except TsuzukiError as error:
        return _view(context, query, problem=context.problem(error))
    chart = chart_of(found.rows, top=query.top, months=query.months, left_out=found.left_out)
    rows = context.mask([row for row in found.rows if row["month"] in {*chart.months}])
    return _view(context, query, chart, rows, found.total)


def _view(
    context: PageContext,
    query: MonthlyQuery,
    chart: Chart | None = None,
    rows: Sequence[Mapping[str, Any]] = (),
    total: Mapping[str, int] | None = None,
    problem: Problem | None = None,
) -> MonthlyView:
    authors = _authors(rows)
    chart_text = urlencode({"top": query.top, "months": query.months})
    kept = urlencode(
        [
            pair
            for pair in context.viewer.link.parameters
            if pair[0] not in ("top", "months", "cursor")
        ]
    )
    return MonthlyView(
        months=_months(chart) if chart else [],
        series=_series(context, chart) if chart else [],
        authors=authors[:AUTHORS_LISTED],
        author_count=len(authors),
        total=dict(total or {}),
        months_before=chart.months_before if chart else 0,
        teams=team_names(context),
        left_out=LeftOutOut.model_validate(vars(chart.left_out)) if chart else None,
        filters=query.model_dump(mode="json", exclude_defaults=True),
        csv_path="/api/v1/commits/chart/csv?" + "&".join(filter(None, (kept, chart_text))),
        export_path="/api/v1/commits/export" + (f"?{kept}" if kept else ""),
        problem=problem,
    )


def team_names(context: PageContext) -> list[str]:
    """None if there is a mistake in the file of people: what it says is told where it is read."""
    try:
        return commits_service(context).reports.team_names()
    except TsuzukiError:
        return []


def _months(chart: Chart) -> list[MonthOut]:
    return [
        MonthOut(
            month=month,
            since=f"{month}-01",
            until=f"{month}-{monthrange(int(month[:4]), int(month[5:]))[1]:02}",
            total=sum(series.commits[place] for series in chart.series),
            commits=[series.commits[place] for series in chart.series],
        )
        for place, month in enumerate(chart.months)
    ]


def _series(context: PageContext, chart: Chart) -> list[ChartSeries]:
    return [
        ChartSeries(
            author=context.mask(series.author),
            filter=None if chart.is_of_others(place) else _filter_of(context.mask(series.author)),
            commits=sum(series.commits),
        )
        for place, series in enumerate(chart.series)
    ]


def _filter_of(label: str) -> str:
    """The address, where it is needed to tell two authors of one name apart."""
    name, _, address = label.rpartition(" <")
    return address.removesuffix(">") if name and label.endswith(">") else label


def _authors(rows: Iterable[Mapping[str, Any]]) -> list[AuthorOut]:
    """With the most commits first."""
    sums: dict[tuple[str, str], Counter[str]] = {}
    for row in rows:
        counted = sums.setdefault((row["author_name"], row["author_email"]), Counter())
        for key in ("commits", "additions", "deletions"):
            counted[key] += row[key]
    ranked = sorted(sums, key=lambda who: (-sums[who]["commits"], who))
    return [
        AuthorOut(
            name=name or email,
            filter=email or name,
            commits=sums[name, email]["commits"],
            additions=sums[name, email]["additions"],
            deletions=sums[name, email]["deletions"],
        )
        for name, email in ranked
    ]
