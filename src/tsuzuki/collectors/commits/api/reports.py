"""`/commits/stats`, `/commits/chart` and `/commits/export`: statistics and export of collected commits."""

from collections.abc import Iterator
from dataclasses import asdict
from tempfile import TemporaryFile
from typing import IO, Annotated, Any, Literal

from fastapi import Query, Response
from pydantic import BaseModel, Field
from starlette.responses import StreamingResponse

from tsuzuki.collectors.commits.api.commits import commits_service
from tsuzuki.collectors.commits.service.export_text import ExportFormat, chart_text, export_text
from tsuzuki.collectors.commits.service.selection import CommitSelection, Identities, Merges
from tsuzuki.collectors.commits.service.statistics import Dimension
from tsuzuki.model.access import Right
from tsuzuki.web.answers import GivenDay, Model
from tsuzuki.web.context import Context
from tsuzuki.web.problems import InvalidRequest, PartProblem
from tsuzuki.web.route import ApiRouter

router = ApiRouter("commits")

ROWS_MAX = 10_000
PIECE_BYTES = 65_536
MEDIA_TYPES = {"csv": "text/csv", "jsonl": "application/jsonl"}
Words = Annotated[list[Annotated[str, Field(min_length=1, max_length=500)]], Field(max_length=100)]


class CsvResponse(Response):
    media_type = MEDIA_TYPES["csv"]


class SelectionQuery(BaseModel):
    """Which commits. Merges and bots are left out unless they are asked for."""

    since: GivenDay | None = Field(None, description="First day (UTC).")
    until: GivenDay | None = Field(None, description="Last day, inclusive (UTC).")
    author: Words = Field([], description="Email address or name.")
    project: Words = []
    branch: Words = []
    team: Words = []
    merges: Merges = Merges.EXCLUDE
    bots: bool = Field(False, description="Include commits by bots.")
    exclude_path: Words = Field(
        [], description="Exclude changes to paths matching these .gitignore patterns."
    )
    identities: Identities = Field(
        Identities.JOINED, description="Group authors by person, or by name and address as written."
    )
    generated: bool = Field(True, description="Include lock files, vendored and generated code.")

    def selection(self) -> CommitSelection:
        return CommitSelection(
            projects=tuple(self.project),
            branches=tuple(self.branch),
            authors=tuple(self.author),
            teams=tuple(self.team),
            since=self.since,
            until=self.until,
            merges=self.merges,
            bots=self.bots,
            exclude_paths=tuple(self.exclude_path),
            generated=self.generated,
            identities=self.identities,
        )


class StatisticsQuery(SelectionQuery):
    by: list[Dimension] = Field(
        [Dimension.MONTH],
        min_length=1,
        max_length=len(Dimension),
        description="Grouping; each at most once.",
    )
    sort: str | None = Field(
        None, max_length=50, description="`KEY[:asc|desc]`.", examples=["commits:desc"]
    )
    top: int = Field(1000, ge=1, le=ROWS_MAX, description="Maximum number of rows.")


class ExportQuery(SelectionQuery):
    format: Literal["csv", "jsonl"] = "csv"


class ChartQuery(SelectionQuery):
    top: int = Field(5, ge=1, le=100, description="Number of authors.")
    months: int = Field(12, ge=1, le=600, description="Number of months, up to the last one.")


class LeftOutOut(Model):
    """What was asked for and is not counted, and what is not known of what is."""

    merges: int
    bots: int
    parents_unknown: int
    paths: int
    paths_unknown: int


class StatisticsOut(Model):
    """`total` is that of every commit, each counted once. `row_count` is how many rows there are in all."""

    rows: list[dict[str, Any]]
    total: dict[str, int]
    row_count: int
    left_out: LeftOutOut


class SeriesOut(Model):
    """The commits of one author, or of the others, in each month."""

    author: str
    commits: list[int]


class ChartOut(Model):
    """Months follow each other without a gap. `months_before`: so many older months with commits are not shown."""

    months: list[str]
    series: list[SeriesOut]
    months_before: int
    left_out: LeftOutOut


@router.get("/commits/stats", right=Right.COLLECTORS_READ, refuses=[404])
def commit_statistics(
    context: Context, query: Annotated[StatisticsQuery, Query()]
) -> StatisticsOut:
    """Count commits and changed lines. `by` and the filters can be repeated."""
    if len(set(query.by)) != len(query.by):
        message = "duplicate grouping"
        raise InvalidRequest([PartProblem(where="query.by", message=message)])
    found = commits_service(context).reports.statistics(
        query.by, query.selection(), sort=query.sort, top=query.top
    )
    return StatisticsOut(
        rows=found.rows,
        total=found.total,
        row_count=found.row_count,
        left_out=LeftOutOut.model_validate(asdict(found.left_out)),
    )


@router.get("/commits/chart", right=Right.COLLECTORS_READ, refuses=[404])
def commit_chart(context: Context, query: Annotated[ChartQuery, Query()]) -> ChartOut:
    """The numbers of a chart: commits per month and author. Authors beside the top ones are counted together."""
    chart = commits_service(context).reports.chart(
        query.selection(), top=query.top, months=query.months
    )
    return ChartOut(
        months=list(chart.months),
        series=[SeriesOut(author=one.author, commits=list(one.commits)) for one in chart.series],
        months_before=chart.months_before,
        left_out=LeftOutOut.model_validate(asdict(chart.left_out)),
    )


@router.get(
    "/commits/chart/csv", right=Right.COLLECTORS_READ, refuses=[404], response_class=CsvResponse
)
def commit_chart_table(context: Context, query: Annotated[ChartQuery, Query()]) -> CsvResponse:
    """The same numbers as a table: a row for each month and a column for each author."""
    chart = commits_service(context).reports.chart(
        query.selection(), top=query.top, months=query.months
    )
    name = {"Content-Disposition": 'attachment; filename="commits-by-month.csv"'}
    return CsvResponse(chart_text(chart).encode("utf-8", "backslashreplace"), headers=name)


@router.get(
    "/commits/export",
    right=Right.COLLECTORS_READ,
    refuses=[404],
    response_class=StreamingResponse,
    responses={
        200: {
            "content": {
                media_type: {"schema": {"type": "string"}} for media_type in MEDIA_TYPES.values()
            }
        },
    },
)
def export_commits(context: Context, query: Annotated[ExportQuery, Query()]) -> StreamingResponse:
    """Every stored commit as a file, once for each branch that has it."""
    rows = commits_service(context).reports.export(query.selection())
    # Read to its end first: a slow reader keeps no snapshot open, and what goes wrong is told, not cut off.
    file = TemporaryFile()  # noqa: SIM115 - closed when it was sent
    try:
        for piece in export_text(rows, ExportFormat(query.format)):
            file.write(piece.encode("utf-8", "backslashreplace"))
    except BaseException:
        file.close()
        raise
    length = file.tell()
    return StreamingResponse(
        _pieces(file),
        media_type=MEDIA_TYPES[query.format],
        headers={
            "Content-Disposition": f'attachment; filename="commits.{query.format}"',
            "Content-Length": str(length),
        },
    )


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        file.seek(0)
        while piece := file.read(PIECE_BYTES):
            yield piece
