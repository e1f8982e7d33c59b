"""Questions about the trees of the jobs: search with a preview, source with an address for each line, references,
outline, map."""

from typing import Annotated, Any

from fastapi import Query
from pydantic import Field

from tsuzuki.collectors.codeindex.api.answers import (
    ExcerptOut,
    FoundOut,
    FoundPage,
    MapOut,
    MapQuery,
    OutlineOut,
    OutlineQuery,
    ReadQuery,
    ReferencesOut,
    ReferencesQuery,
    SearchQuery,
    code_map,
    code_outline,
    code_references,
    read_code,
    search_code,
)
from tsuzuki.collectors.codeindex.rights import CODE_READ
from tsuzuki.model.errors import TsuzukiError
from tsuzuki.web.answers import Model
from tsuzuki.web.pages.context import Page, PageContext
from tsuzuki.web.pages.route import Screen
from tsuzuki.web.problems import Problem

screen = Screen()

LINES_SHOWN = 1000
LINES_BEFORE = 4
PREVIEW_LINES = 32


class SearchPageQuery(SearchQuery):
    """`show` is the place of the result that is shown beside the others, as in `src/app.py:12`; the first if not."""

    text: str = Field("", max_length=500)
    limit: int = Field(20, ge=1, le=100)
    show: str | None = Field(None, max_length=4200)


class SearchPage(Model):
    """`found` is null as long as nothing is searched for, and if `problem` says why it cannot be answered."""

    filters: dict[str, Any]
    found: FoundPage | None = None
    preview: ExcerptOut | None = None
    preview_line: int | None = None
    problem: Problem | None = None


@screen.page("/index/search", right=CODE_READ, template="screens/code_search.html")
def search_page(context: Page, query: Annotated[SearchPageQuery, Query()]) -> SearchPage:
    filters = query.model_dump(mode="json", exclude_defaults=True)
    if not query.text.strip():
        return SearchPage(filters=filters)
    try:
        found = search_code(context, query)
    except TsuzukiError as problem:
        return SearchPage(filters=filters, problem=context.problem(problem))
    shown = next((one for one in found.items if one.place == query.show), None)
    shown = shown or (found.items[0] if found.items else None)
    return SearchPage(
        found=found,
        preview=_preview(context, query.tree, shown) if shown else None,
        preview_line=shown.line if shown else None,
        filters=filters,
    )


def _preview(context: PageContext, tree: str | None, found: FoundOut) -> ExcerptOut | None:
    """A part of the file around a result; none if the file is gone meanwhile."""
    first = max(found.line - LINES_BEFORE, 1)
    lines = f"{first}-{first + PREVIEW_LINES - 1}"
    try:
        return read_code(context, ReadQuery(tree=tree, name=found.path, lines=lines, whole=False))
    except TsuzukiError:
        return None


class SourceView(Model):
    excerpt: ExcerptOut | None
    problem: Problem | None = None


@screen.page("/index/read", right=CODE_READ, template="screens/code_read.html")
def read_page(context: Page, query: Annotated[ReadQuery, Query()]) -> SourceView:
    try:
        whole = read_code(context, query)
    except TsuzukiError as problem:
        return SourceView(excerpt=None, problem=context.problem(problem))
    left_out = whole.lines_left_out + max(len(whole.lines) - LINES_SHOWN, 0)
    cut = {"lines": whole.lines[:LINES_SHOWN], "lines_left_out": left_out}
    return SourceView(excerpt=whole.model_copy(update=cut))


class ReferencesView(Model):
    references: ReferencesOut | None
    filters: dict[str, Any]
    problem: Problem | None = None


@screen.page("/index/references", right=CODE_READ, template="screens/code_references.html")
def references_page(context: Page, query: Annotated[ReferencesQuery, Query()]) -> ReferencesView:
    filters = query.model_dump(mode="json", exclude_defaults=True)
    try:
        found = code_references(context, query)
    except TsuzukiError as problem:
        return ReferencesView(references=None, filters=filters, problem=context.problem(problem))
    return ReferencesView(references=found, filters=filters)


class OutlineView(Model):
    outline: OutlineOut | None
    path: str
    problem: Problem | None = None


@screen.page("/index/outline", right=CODE_READ, template="screens/code_outline.html")
def outline_page(context: Page, query: Annotated[OutlineQuery, Query()]) -> OutlineView:
    try:
        return OutlineView(outline=code_outline(context, query), path=query.path)
    except TsuzukiError as problem:
        return OutlineView(outline=None, path=query.path, problem=context.problem(problem))


class MapView(Model):
    """The answer of `/code/map`: files, the most used first, each with its share of all uses."""

    map: MapOut | None
    filters: dict[str, Any]
    problem: Problem | None = None


@screen.page("/index/map", right=CODE_READ, template="screens/code_map.html")
def map_page(context: Page, query: Annotated[MapQuery, Query()]) -> MapView:
    filters = query.model_dump(mode="json", exclude_defaults=True)
    try:
        return MapView(map=code_map(context, query), filters=filters)
    except TsuzukiError as problem:
        return MapView(map=None, filters=filters, problem=context.problem(problem))
