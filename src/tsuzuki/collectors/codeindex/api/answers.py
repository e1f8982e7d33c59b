"""`/code/search`, `read`, `references`, `outline` and `map`: questions about the trees of the jobs."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import Query
from pydantic import Field

from tsuzuki.collectors.codeindex.api.index import TreeQuery, code_trees, shown
from tsuzuki.collectors.codeindex.rights import CODE_READ
from tsuzuki.web.answers import Model
from tsuzuki.web.context import Context
from tsuzuki.web.route import ApiRouter

if TYPE_CHECKING:
    from tsuzuki.collectors.codeindex.service.answers import CodeAnswers, IndexState

router = ApiRouter("code")

LIMIT_MAX = 500
LINES_MAX = 5_000
Words = Annotated[list[Annotated[str, Field(min_length=1, max_length=200)]], Field(max_length=50)]
Paths = Annotated[
    Words,
    Field(
        description="Include only files matching this .gitignore pattern: `*.py`, `src/`, `!tests`."
    ),
]


class IndexOut(Model):
    """What an answer was made from. `pending` files have changed since and may be missing in it. `unlisted_folders`
    are repositories whose files git did not list, `.` for the tree itself: of those only files that git listed before
    are shown."""

    tree: str
    state: str
    at: str | None
    head: str | None
    percent: int | None
    pending: int
    reread: int
    unlisted_folders: list[str]


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
    lines_left_out: int = Field(description="Number of lines left out at the end.")


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
    files_left_out: int = Field(
        description="Number of other files that mention the name and were not searched for lack of "
        "time."
    )


class SymbolOut(Model):
    """A definition. `container` is what it lies in."""

    path: str
    language: str | None
    name: str
    kind: str
    container: str | None
    line: int
    end_line: int
    column: int
    signature: str | None
    doc: str | None
    name_path: str


class OutlineSymbol(SymbolOut):
    """`depth` 0 is the outermost."""

    place: str
    depth: int


class OutlineOut(Model):
    """The symbols of a file as a tree, or of a folder those at the top of its files."""

    index: IndexOut
    items: list[OutlineSymbol]
    has_more: bool


class MapFileOut(Model):
    """A file, its share of all uses, and its most used definitions."""

    path: str
    rank: float
    symbols: list[SymbolOut]


class MapOut(Model):
    index: IndexOut
    items: list[MapFileOut]


class SearchQuery(TreeQuery):
    text: str = Field(min_length=1, max_length=500, examples=["parse_config"])
    where: Literal["names", "text", "both"] = "both"
    ignore_case: bool = Field(False, description="Match case in text; names always ignore case.")
    regex: bool = Field(
        False,
        description="Treat the text as a regular expression per line; limited to five seconds.",
    )
    kind: Words = Field([], description="Include only definitions of this kind: class, function, …")
    language: Words = Field([], description="Include only definitions in this language.")
    path: Paths = Field([])
    limit: int = Field(20, ge=1, le=LIMIT_MAX, description="Maximum number of names, and of lines.")


class ReadQuery(TreeQuery):
    name: str = Field(
        min_length=1,
        max_length=500,
        description="Symbol (`Class/method`, `file:name`) or file (`file`, `file:10-20`).",
        examples=["src/app.py:10-20"],
    )
    lines: str | None = Field(
        None, max_length=30, description="Lines of a file.", examples=["10-20"]
    )
    whole: bool = Field(False, description="Return a long class in full, not as an outline.")


class ReferencesQuery(TreeQuery):
    name: str = Field(min_length=1, max_length=500, examples=["parse_config"])
    kind: list[Literal["call", "type", "import", "inherit", "read"]] = Field([], max_length=5)
    path: Paths = Field([])
    tests: bool = Field(True, description="Include references in tests.")
    exact: bool = Field(
        False, description="Include only references that certainly mean this definition."
    )
    limit: int = Field(200, ge=1, le=LIMIT_MAX)


class OutlineQuery(TreeQuery):
    path: str = Field(
        "",
        max_length=4096,
        description="File or folder (default: the whole tree).",
        examples=["src"],
    )
    depth: int | None = Field(
        None, ge=1, le=99, description="Levels of nested definitions; 1 for a folder."
    )
    kind: Words = Field([], description="Include only definitions of this kind: class, function, …")
    limit: int = Field(LIMIT_MAX, ge=1, le=LIMIT_MAX)


class MapQuery(TreeQuery):
    focus: Words = Field([], description="Paths and names of interest.")
    limit: int = Field(20, ge=1, le=LIMIT_MAX, description="Maximum number of files.")


def _answers(context: Context, query: TreeQuery) -> "CodeAnswers":
    trees = code_trees(context)
    return trees.answers(trees.get(query.tree))


def _index_out(context: Context, index: "IndexState") -> IndexOut:
    values = asdict(index)
    return IndexOut.model_validate(shown(context, {"tree": values.pop("root"), **values}))


@router.get("/code/search", right=CODE_READ, refuses=[404])
def search_code(context: Context, query: Annotated[SearchQuery, Query()]) -> FoundPage:
    """Find definitions by a part of their name, and lines by their text."""
    answer = _answers(context, query).search(
        query.text,
        names=query.where != "text",
        lines=query.where != "names",
        ignore_case=query.ignore_case,
        regex=query.regex,
        kinds=query.kind,
        languages=query.language,
        paths=query.path,
        limit=query.limit,
    )
    found = answer.value
    return FoundPage(
        index=_index_out(context, answer.index),
        items=[FoundOut.model_validate(shown(context, row)) for row in found.rows()],
        more_names=found.more_names,
        has_more_lines=found.has_more_lines,
        did_you_mean=shown(context, found.did_you_mean),
    )


@router.get("/code/read", right=CODE_READ, refuses=[404])
def read_code(context: Context, query: Annotated[ReadQuery, Query()]) -> ExcerptOut:
    """The source of a symbol or of a file."""
    answer = _answers(context, query).read([query.name], lines=query.lines, whole=query.whole)
    (excerpt,) = answer.value
    values = excerpt.as_dict()
    lines = values.pop("lines")
    return ExcerptOut(
        **shown(context, values),
        index=_index_out(context, answer.index),
        lines=shown(context, lines[:LINES_MAX]),
        lines_left_out=max(len(lines) - LINES_MAX, 0),
    )


@router.get("/code/references", right=CODE_READ, refuses=[404])
def code_references(context: Context, query: Annotated[ReferencesQuery, Query()]) -> ReferencesOut:
    """Where a symbol is used, and how sure that is."""
    answer = _answers(context, query).references(
        query.name, kinds=query.kind, paths=query.path, tests=query.tests
    )
    uses = answer.value.uses
    found = [one for one in uses if one.confidence.is_exact or not query.exact]
    return ReferencesOut(
        index=_index_out(context, answer.index),
        items=[
            ReferenceOut.model_validate(shown(context, one.as_dict()))
            for one in found[: query.limit]
        ],
        total=len(uses),
        exact=answer.value.exact,
        files_left_out=answer.value.files_left_out,
    )


@router.get("/code/outline", right=CODE_READ, refuses=[404])
def code_outline(context: Context, query: Annotated[OutlineQuery, Query()]) -> OutlineOut:
    """What a file defines, or what the files of a folder define at their top."""
    answer = _answers(context, query).outline(query.path, depth=query.depth, kinds=query.kind)
    return OutlineOut(
        index=_index_out(context, answer.index),
        items=[
            OutlineSymbol.model_validate(shown(context, entry.as_dict()))
            for entry in answer.value[: query.limit]
        ],
        has_more=len(answer.value) > query.limit,
    )


@router.get("/code/map", right=CODE_READ, refuses=[404])
def code_map(context: Context, query: Annotated[MapQuery, Query()]) -> MapOut:
    """The files that the rest of the tree uses most, with their most used definitions."""
    answer = _answers(context, query).map(focus=query.focus, limit=query.limit)
    return MapOut(
        index=_index_out(context, answer.index),
        items=[MapFileOut.model_validate(shown(context, file.as_dict())) for file in answer.value],
    )
