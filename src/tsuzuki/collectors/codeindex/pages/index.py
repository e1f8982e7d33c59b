"""The code index: the trees of the jobs, the state of each index, and its builds."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import Form, Query, Response
from pydantic import ConfigDict

from tsuzuki.collectors.codeindex.api.index import (
    BuildRequest,
    FileOut,
    FileQuery,
    IndexStatusOut,
    TreeName,
    TreeOut,
    TreeQuery,
    index_files,
    index_status,
    listcode_trees,
    remove_index,
    start_build,
)
from tsuzuki.collectors.codeindex.rights import CODE_BUILD, CODE_READ
from tsuzuki.model.errors import TsuzukiError
from tsuzuki.web.answers import Model, Moment
from tsuzuki.web.pages.context import Page
from tsuzuki.web.pages.language import message
from tsuzuki.web.pages.links import path_part
from tsuzuki.web.pages.route import Screen
from tsuzuki.web.problems import Problem

screen = Screen()


class TreeShown(TreeOut):
    """`indexed_at` is the time of `last_indexed_at`."""

    indexed_at: Moment | None


class IndexView(Model):
    """`status` is that of the tree that is asked for, or of the only one; `problem` says why there is none."""

    trees: list[TreeShown]
    status: IndexStatusOut | None
    indexed_at: Moment | None = None
    problem: Problem | None = None


@screen.page("/index", right=CODE_READ, template="screens/code_index.html", shared=True)
def index_page(context: Page, query: Annotated[TreeQuery, Query()]) -> IndexView:
    trees = [_shown(tree) for tree in listcode_trees(context).items]
    if query.tree is None and len(trees) != 1:
        return IndexView(trees=trees, status=None)
    try:
        status = index_status(context, query)
    except TsuzukiError as problem:
        return IndexView(trees=trees, status=None, problem=context.problem(problem))
    return IndexView(trees=trees, status=status, indexed_at=_moment(status.last_indexed_at))


def _shown(tree: TreeOut) -> TreeShown:
    return TreeShown(**tree.model_dump(), indexed_at=_moment(tree.last_indexed_at))


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


class FilesView(Model):
    """Files of an index with an outcome or a language."""

    files: list[FileOut]
    next_cursor: str | None
    filters: dict[str, Any]


@screen.page("/index/files", right=CODE_READ, template="screens/code_files.html")
def files_page(context: Page, query: Annotated[FileQuery, Query()]) -> FilesView:
    page = index_files(context, query)
    return FilesView(files=page.items, next_cursor=page.next_cursor, filters=page.filters)


class TreeActionView(Model):
    """A tree, and how many files and symbols its index has."""

    tree: TreeOut


class TreeForm(TreeQuery):
    model_config = ConfigDict(extra="forbid")

    tree: TreeName


class BuildForm(TreeForm):
    force: bool = False


def question(context: Page, form: Annotated[TreeQuery, Query()]) -> TreeActionView:
    """The tree by its root; without a name the only one. Raises `NotFound`."""
    root = index_status(context, TreeQuery(tree=form.tree)).tree
    return TreeActionView(
        tree=next(tree for tree in listcode_trees(context).items if tree.tree == root)
    )


@screen.confirmation(
    "/index/build",
    right=CODE_BUILD,
    template="screens/code_build.html",
    question=question,
)
def build(context: Page, form: Annotated[BuildForm, Form()]) -> Response:
    started = start_build(context, Response(), BuildRequest(tree=form.tree, force=form.force))
    text = (
        message("Building the index …")
        if started.is_new
        else message("A build is already in progress.")
    )
    return context.redirect(f"/index?tree={path_part(form.tree)}", text)


@screen.confirmation(
    "/index/remove",
    right=CODE_BUILD,
    template="screens/code_remove.html",
    question=question,
)
def remove(context: Page, form: Annotated[TreeForm, Form()]) -> Response:
    remove_index(context, form.tree)
    return context.redirect("/index", message("Index removed."))
