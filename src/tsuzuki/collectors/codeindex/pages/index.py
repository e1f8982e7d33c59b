"""The code index: the trees of the jobs, how each index is, and builds of them."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import Form, Query, Response
from pydantic import BaseModel, ConfigDict

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
from tsuzuki.web.pages.context import Page, PageContext
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
    """A tree, and how many files and symbols its index has. `problem` says why it cannot be done."""

    tree: TreeOut
    problem: Problem | None = None


class TreeForm(BaseModel):
    model_config = ConfigDict(extra="forbid")

    tree: TreeName


class BuildForm(TreeForm):
    force: bool = False


@screen.page("/index/build", right=CODE_BUILD, template="screens/code_build.html")
def confirm_build(context: Page, query: Annotated[TreeQuery, Query()]) -> TreeActionView:
    return TreeActionView(tree=_tree(context, query.tree))


@screen.form("/index/build", right=CODE_BUILD)
def build(context: Page, form: Annotated[BuildForm, Form()]) -> Response:
    asked = BuildRequest(tree=form.tree, force=form.force)
    try:
        started = start_build(context, Response(), asked)
    except TsuzukiError as problem:
        return _refused(context, form.tree, problem, "screens/code_build.html")
    text = (
        message("Building the index …")
        if started.is_new
        else message("A build is already in progress.")
    )
    return context.redirect(f"/index?tree={path_part(form.tree)}", text)


@screen.page("/index/remove", right=CODE_BUILD, template="screens/code_remove.html")
def confirm_remove(context: Page, query: Annotated[TreeQuery, Query()]) -> TreeActionView:
    return TreeActionView(tree=_tree(context, query.tree))


@screen.form("/index/remove", right=CODE_BUILD)
def remove(context: Page, form: Annotated[TreeForm, Form()]) -> Response:
    try:
        remove_index(context, form.tree)
    except TsuzukiError as problem:
        return _refused(context, form.tree, problem, "screens/code_remove.html")
    return context.redirect("/index", message("Index removed."))


def _tree(context: PageContext, named: str | None) -> TreeOut:
    """The tree by its root; without a name the only one. Raises `NotFound`."""
    root = index_status(context, TreeQuery(tree=named)).tree
    return next(tree for tree in listcode_trees(context).items if tree.tree == root)


def _refused(context: PageContext, named: str, problem: TsuzukiError, template: str) -> Response:
    """The page of the question again, with why it cannot be done."""
    told = context.problem(problem)
    view = TreeActionView(tree=_tree(context, named), problem=told)
    return context.render(template, view, status=told.status)
