"""`/code/trees`, `/code/builds`, `/code/status`: the indexes of the jobs' trees, and builds of them.

A tree is one that a job of the type codeindex names: a request can choose among these, and names no other folder.
"""

from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import Path, Query, Response
from pydantic import BaseModel, Field

from tsuzuki.collectors.codeindex.rights import CODE_BUILD, CODE_READ
from tsuzuki.web.answers import Model
from tsuzuki.web.context import Context
from tsuzuki.web.paging import Page, PageRequest
from tsuzuki.web.route import ApiRouter

if TYPE_CHECKING:
    from tsuzuki.collectors.codeindex.service.builds import IndexEntry
    from tsuzuki.collectors.codeindex.service.job_trees import JobTree, JobTrees

router = ApiRouter("code")

TreeName = Annotated[str, Field(min_length=1, max_length=4096)]
TREE_WORDS = "Root of a tree, as listed by `code/trees`; optional if there is only one."
BuildId = Annotated[
    str, Path(min_length=1, max_length=100, examples=["build-1794900000000-abc123"])
]


class TreeOut(Model):
    """A tree of a job. Without an index (`is_indexed`) the figures of it are null."""

    tree: str
    job: str
    is_indexed: bool = Field(description="True if the tree was ever built.")
    state: str | None = Field(
        description="ready, building, incomplete, corrupt, newer or root gone."
    )
    files: int | None
    symbols: int | None
    last_indexed_at: str | None
    bytes: int | None = Field(description="Size of the index.")


class TreesOut(Model):
    items: list[TreeOut]


class BuildRequest(Model):
    tree: TreeName | None = Field(None, description=TREE_WORDS)
    paths: list[Annotated[str, Field(min_length=1, max_length=4096)]] = Field(
        default_factory=list,
        max_length=1000,
        description="Build only these files and folders, if the index has the rest.",
    )
    force: bool = Field(False, description="Parse unchanged files again.")


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
    symbols: int | None = Field(description="When the last build was completed.")
    last_indexed_at: str | None
    outcomes: dict[str, int]
    languages: dict[str, int]
    extractors: dict[str, int]
    problems: list[dict[str, str]]
    is_listed: bool = Field(
        description="False if git did not list every file of the index; the others are not shown."
    )


class TreeQuery(BaseModel):
    tree: TreeName | None = Field(None, description=TREE_WORDS)


Outcome = Literal[
    "indexed",
    "syntax_errors",
    "no_grammar",
    "binary",
    "too_large",
    "long_line",
    "unreadable",
    "failed",
]


class FileQuery(PageRequest):
    tree: TreeName | None = Field(None, description=TREE_WORDS)
    outcome: Outcome | None = None
    language: str | None = Field(None, min_length=1, max_length=100, examples=["python"])


class FileOut(Model):
    """A file of an index. `error` says why it could not be read or parsed."""

    path: str
    language: str | None
    outcome: Outcome
    size: int
    error: str | None


def code_trees(context: Context) -> "JobTrees":
    service: JobTrees = context.application.service("codeindex")
    return service


def shown(context: Context, value: Any) -> Any:
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


def _build_out(context: Context, job: dict[str, Any]) -> BuildOut:
    values = {
        **{name: job[name] for name in ("id", "status", "progress", "result", "error")},
        "started_at": job["startedAt"],
        "completed_at": job["completedAt"],
        "failed_at": job["failedAt"],
    }
    return BuildOut.model_validate(shown(context, values))


@router.get("/code/trees", right=CODE_READ)
def listcode_trees(context: Context) -> TreesOut:
    """The trees that jobs index, with the state and size of each index."""
    trees = code_trees(context)
    return TreesOut(items=[_tree_out(context, tree, trees.entry(tree)) for tree in trees.find()])


def _tree_out(context: Context, tree: "JobTree", entry: "IndexEntry | None") -> TreeOut:
    figures = ("state", "files", "symbols", "last_indexed_at", "bytes")
    return TreeOut(
        tree=shown(context, str(tree.root)),
        job=tree.job,
        is_indexed=tree.is_indexed,
        **{name: getattr(entry, name, None) for name in figures},
    )


@router.delete("/code/indexes", right=CODE_BUILD, refuses=[404, 409], status_code=204)
def remove_index(
    context: Context, tree: Annotated[TreeName, Query(description=TREE_WORDS)]
) -> None:
    """Remove the index of a tree. The tree itself is not touched. Refused while it is built or watched."""
    trees = code_trees(context)
    trees.remove(trees.get(tree))


@router.post("/code/builds", right=CODE_BUILD, refuses=[404], status_code=202)
def start_build(
    context: Context, response: Response, body: BuildRequest | None = None
) -> BuildStarted:
    """Start a build of a tree in a process of its own, or name the one that runs."""
    trees = code_trees(context)
    asked = body or BuildRequest(tree=None, force=False)
    tree = trees.get(asked.tree)
    started = trees.build(tree, paths=asked.paths, is_forced=asked.force)
    response.headers["Location"] = f"/api/v1/code/builds/{started.id}"
    return BuildStarted(
        id=started.id,
        is_new=started.is_new,
        tree=shown(context, str(tree.root)),
        notes=shown(context, list(started.notes)),
    )


@router.get("/code/builds/{build_id}", right=CODE_READ, refuses=[404])
def get_build(
    context: Context, build_id: BuildId, query: Annotated[TreeQuery, Query()]
) -> BuildOut:
    """One build: while it runs, and five minutes after."""
    trees = code_trees(context)
    job = trees.job(trees.get(query.tree), build_id)
    return _build_out(context, job.as_json())


@router.get("/code/files", right=CODE_READ, refuses=[404])
def index_files(context: Context, query: Annotated[FileQuery, Query()]) -> Page[FileOut]:
    """List the files of an index, by path."""
    trees = code_trees(context)
    tree = trees.get(query.tree)
    return context.page(
        query,
        find=lambda after, limit: trees.files(
            tree, outcome=query.outcome, language=query.language, after=after, limit=limit
        ),
        position=lambda file: file.path,
        item=lambda file: FileOut.model_validate(shown(context, file._asdict())),
    )


@router.get("/code/status", right=CODE_READ, refuses=[404])
def index_status(context: Context, query: Annotated[TreeQuery, Query()]) -> IndexStatusOut:
    """How the index of a tree is."""
    trees = code_trees(context)
    found = trees.status(trees.get(query.tree))
    return IndexStatusOut(
        tree=shown(context, found.root),
        state=found.state,
        build=_build_out(context, found.job.as_json()) if found.job else None,
        symbols=found.stats.total if found.stats else None,
        last_indexed_at=found.stats.last_indexed_at if found.stats else None,
        outcomes=dict(found.outcomes),
        languages=dict(found.languages),
        extractors=dict(found.extractors),
        problems=shown(context, [dict(problem) for problem in found.problems]),
        is_listed=found.is_listed,
    )
