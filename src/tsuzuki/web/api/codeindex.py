"""`/code`: builds of the indexes of the jobs' trees, and questions about them.

A tree is one that a job of the type codeindex names: a request can choose among these, and names no other folder.
"""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Response
from pydantic import BaseModel, Field

from tsuzuki.model.access import Right
from tsuzuki.web.answers import Model
from tsuzuki.web.context import Context
from tsuzuki.web.route import ApiRoute, problem_responses
from tsuzuki.web.security.rights import requires

if TYPE_CHECKING:
    from tsuzuki.collectors.codeindex.service.answers import CodeAnswers, IndexState
    from tsuzuki.collectors.codeindex.service.job_trees import JobTrees

router = APIRouter(route_class=ApiRoute, tags=["code"])

LIMIT_MAX = 500
LINES_MAX = 5_000
TreeName = Annotated[str, Field(min_length=1, max_length=4096)]
TREE_WORDS = "The root of a tree, as `code/trees` lists it; not needed if there is one only."
BuildId = Annotated[
    str, Path(min_length=1, max_length=100, examples=["build-1794900000000-abc123"])
]
Words = Annotated[list[Annotated[str, Field(min_length=1, max_length=200)]], Field(max_length=50)]
Paths = Annotated[
    Words, Field(description="Only such files, as in .gitignore: `*.py`, `src/`, `!tests`.")
]


class TreeOut(Model):
    tree: str
    job: str
    is_indexed: bool = Field(description="Whether a build of it was started at any time.")


class TreesOut(Model):
    items: list[TreeOut]


class BuildRequest(Model):
    tree: TreeName | None = Field(None, description=TREE_WORDS)


class BuildStarted(Model):
    """`is_new` is false if a build was running already: that is the one."""

    id: str
    is_new: bool
    tree: str
    notes: list[str]


class BuildOut(Model):
    """A build: `running`, `completed` or `failed`. Times are ISO 8601."""

    id: str
    status: str
    progress: dict[str, float]
    result: dict[str, Any] | None
    error: str | None
    started_at: str
    completed_at: str | None
    failed_at: str | None


class IndexStatusOut(Model):
    """`state` is missing, building, ready or incomplete; `build` runs, or ended in the last five minutes."""

    tree: str
    state: str
    build: BuildOut | None
    symbols: int | None = Field(description="When the last build completed.")
    last_indexed_at: str | None
    outcomes: dict[str, int]
    languages: dict[str, int]
    extractors: dict[str, int]
    problems: list[dict[str, str]]


class IndexOut(Model):
    """What an answer was made from. `pending` files have changed since and may be missing in it."""

    tree: str
    state: str
    at: str | None
    head: str | None
    percent: int | None
    pending: int
    reread: int


class FoundOut(Model):
    """A definition; or a line of the kind `text`, which has no name."""

    place: str
    path: str
    language: str | None
    name: str | None
    kind: str
    container: str | None
    line: int
    end_line: int | None
    column: int
    signature: str | None
    doc: str | None
    name_path: str | None
    match: str | None
    text: str


class FoundPage(Model):
    index: IndexOut
    items: list[FoundOut]
    more_names: int
    has_more_lines: bool
    did_you_mean: str | None


class LineOut(Model):
    line: int
    text: str


class ExcerptOut(Model):
    """Lines of a file or of a symbol; of a long class (`is_outline`) those that declare its members."""

    index: IndexOut
    path: str
    language: str
    start: int
    end: int
    symbol: dict[str, Any] | None
    is_outline: bool
    lines: list[LineOut]
    lines_left_out: int = Field(description="How many lines at the end are not shown.")


class ReferenceOut(Model):
    """A use of a name. If it is not `exact`, only the name is the same: it may mean any of `definitions`."""

    place: str
    path: str
    line: int
    column: int
    kind: str
    name: str
    container: str
    text: str
    confidence: str
    definition: str | None
    definitions: int
    exact: bool


class ReferencesOut(Model):
    """`total` and `exact` count all of them, shown or not."""

    index: IndexOut
    items: list[ReferenceOut]
    total: int
    exact: int


class TreeQuery(BaseModel):
    tree: TreeName | None = Field(None, description=TREE_WORDS)


class SearchQuery(TreeQuery):
    text: str = Field(min_length=1, max_length=500, examples=["parse_config"])
    where: Literal["names", "text", "both"] = "both"
    ignore_case: bool = Field(False, description="In text; names never mind the case.")
    kind: Words = Field([], description="Only class, function, …; of names only.")
    language: Words = Field([], description="Only these; of names only.")
    path: Paths = []
    limit: int = Field(20, ge=1, le=LIMIT_MAX, description="Of each, names and lines.")


class ReadQuery(TreeQuery):
    name: str = Field(
        min_length=1,
        max_length=500,
        description="A symbol (`Class/method`, `file:name`) or a file (`file`, `file:10-20`).",
        examples=["src/app.py:10-20"],
    )
    lines: str | None = Field(None, max_length=30, description="Of a file.", examples=["10-20"])
    whole: bool = Field(False, description="A long class as a whole, not as an outline.")


class ReferencesQuery(TreeQuery):
    name: str = Field(min_length=1, max_length=500, examples=["parse_config"])
    kind: list[Literal["call", "type", "import", "inherit", "read"]] = Field([], max_length=5)
    path: Paths = []
    tests: bool = Field(True, description="With those in tests.")
    exact: bool = Field(False, description="Only those that surely mean this definition.")
    limit: int = Field(200, ge=1, le=LIMIT_MAX)


def _trees(context: Context) -> "JobTrees":
    service: JobTrees = context.application.service("codeindex")
    return service


def _answers(context: Context, query: TreeQuery) -> "CodeAnswers":
    trees = _trees(context)
    return trees.answers(trees.get(query.tree))


def _shown(context: Context, value: Any) -> Any:
    """The value without secrets, and without halves of surrogate pairs: the name of a folder may be no text."""
    return _as_text(context.mask(value))


def _as_text(value: Any) -> Any:
    match value:
        case str():
            return value.encode("utf-8", "backslashreplace").decode()
        case dict():
            return {key: _as_text(inner) for key, inner in value.items()}
        case list():
            return [_as_text(inner) for inner in value]
        case _:
            return value


def _index_out(context: Context, index: "IndexState") -> IndexOut:
    values = asdict(index)
    return IndexOut.model_validate(_shown(context, {"tree": values.pop("root"), **values}))


def _build_out(context: Context, job: dict[str, Any]) -> BuildOut:
    values = {
        **{name: job[name] for name in ("id", "status", "progress", "result", "error")},
        "started_at": job["startedAt"],
        "completed_at": job["completedAt"],
        "failed_at": job["failedAt"],
    }
    return BuildOut.model_validate(_shown(context, values))


@router.get("/code/trees", dependencies=[requires(Right.CODE_READ)])
def list_trees(context: Context) -> TreesOut:
    """The trees that jobs index."""
    return TreesOut(
        items=[
            TreeOut(tree=_shown(context, str(tree.root)), job=tree.job, is_indexed=tree.is_indexed)
            for tree in _trees(context).find()
        ]
    )


@router.post(
    "/code/builds",
    status_code=202,
    dependencies=[requires(Right.CODE_BUILD)],
    responses=problem_responses(404),
)
def start_build(
    context: Context, response: Response, body: BuildRequest | None = None
) -> BuildStarted:
    """Start a build of a tree in a process of its own, or name the one that runs."""
    trees = _trees(context)
    tree = trees.get(body.tree if body else None)
    started = trees.build(tree)
    response.headers["Location"] = f"/api/v1/code/builds/{started.id}"
    return BuildStarted(
        id=started.id,
        is_new=started.is_new,
        tree=_shown(context, str(tree.root)),
        notes=_shown(context, list(started.notes)),
    )


@router.get(
    "/code/builds/{build_id}",
    dependencies=[requires(Right.CODE_READ)],
    responses=problem_responses(404),
)
def get_build(
    context: Context, build_id: BuildId, query: Annotated[TreeQuery, Query()]
) -> BuildOut:
    """One build: while it runs, and five minutes after."""
    trees = _trees(context)
    job = trees.job(trees.get(query.tree), build_id)
    return _build_out(context, job.as_json())


@router.get(
    "/code/status",
    dependencies=[requires(Right.CODE_READ)],
    responses=problem_responses(404),
)
def index_status(context: Context, query: Annotated[TreeQuery, Query()]) -> IndexStatusOut:
    """How the index of a tree is."""
    trees = _trees(context)
    found = trees.status(trees.get(query.tree))
    return IndexStatusOut(
        tree=_shown(context, found.root),
        state=found.state,
        build=_build_out(context, found.job.as_json()) if found.job else None,
        symbols=found.stats.total if found.stats else None,
        last_indexed_at=found.stats.last_indexed_at if found.stats else None,
        outcomes=dict(found.outcomes),
        languages=dict(found.languages),
        extractors=dict(found.extractors),
        problems=_shown(context, [dict(problem) for problem in found.problems]),
    )


@router.get(
    "/code/search",
    dependencies=[requires(Right.CODE_READ)],
    responses=problem_responses(404),
)
def search_code(context: Context, query: Annotated[SearchQuery, Query()]) -> FoundPage:
    """Find definitions by a part of their name, and lines by their text."""
    answer = _answers(context, query).search(
        query.text,
        names=query.where != "text",
        lines=query.where != "names",
        ignore_case=query.ignore_case,
        kinds=query.kind,
        languages=query.language,
        paths=query.path,
        limit=query.limit,
    )
    found = answer.value
    return FoundPage(
        index=_index_out(context, answer.index),
        items=[FoundOut.model_validate(_shown(context, row)) for row in found.rows()],
        more_names=found.more_names,
        has_more_lines=found.has_more_lines,
        did_you_mean=_shown(context, found.did_you_mean),
    )


@router.get(
    "/code/read",
    dependencies=[requires(Right.CODE_READ)],
    responses=problem_responses(404),
)
def read_code(context: Context, query: Annotated[ReadQuery, Query()]) -> ExcerptOut:
    """The source of a symbol or of a file."""
    answer = _answers(context, query).read([query.name], lines=query.lines, whole=query.whole)
    (excerpt,) = answer.value
    values = excerpt.as_dict()
    lines = values.pop("lines")
    return ExcerptOut(
        **_shown(context, values),
        index=_index_out(context, answer.index),
        lines=_shown(context, lines[:LINES_MAX]),
        lines_left_out=max(len(lines) - LINES_MAX, 0),
    )


@router.get(
    "/code/references",
    dependencies=[requires(Right.CODE_READ)],
    responses=problem_responses(404),
)
def code_references(context: Context, query: Annotated[ReferencesQuery, Query()]) -> ReferencesOut:
    """Where a symbol is used, and how sure that is."""
    answer = _answers(context, query).references(
        query.name, kinds=query.kind, paths=query.path, tests=query.tests
    )
    found = [one for one in answer.value if one.confidence.is_exact or not query.exact]
    return ReferencesOut(
        index=_index_out(context, answer.index),
        items=[
            ReferenceOut.model_validate(_shown(context, one.as_dict()))
            for one in found[: query.limit]
        ],
        total=len(answer.value),
        exact=sum(one.confidence.is_exact for one in answer.value),
    )
