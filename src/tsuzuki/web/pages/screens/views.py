"""Saved views: lists with their filters, kept under a name and seen by all who use this server."""

from typing import Annotated

from fastapi import Form, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from tsuzuki.model.access import Right
from tsuzuki.model.errors import UsageError
from tsuzuki.services.access.permissions import require
from tsuzuki.web.answers import Model, Moment
from tsuzuki.web.pages.context import Page
from tsuzuki.web.pages.language import message
from tsuzuki.web.pages.links import local_path
from tsuzuki.web.pages.route import Screen

screen = Screen()

Address = Annotated[str, Field(max_length=2000)]
Name = Annotated[str, Field(max_length=200)]


class SavedViewOut(Model):
    owner: str
    name: str
    address: str
    created_at: Moment
    can_delete: bool


class ViewsView(Model):
    views: list[SavedViewOut]


class NewView(Model):
    name: str
    address: str


class DeleteView(Model):
    name: str
    owner: str


@screen.page("/views", right=Right.RUNS_READ, template="screens/views.html")
def views_page(context: Page) -> ViewsView:
    principal = context.principal
    return ViewsView(
        views=[
            SavedViewOut(
                **vars(view),
                can_delete=view.owner == principal.actor or principal.may(Right.ACCESS_MANAGE),
            )
            for view in context.application.saved_views.find()
            if local_path(view.address)
        ]
    )


class NewQuery(BaseModel):
    address: Address
    name: Name = ""


def new_view(context: Page, form: Annotated[NewQuery, Query()]) -> NewView:  # noqa: ARG001 - each page takes its context
    return NewView(name=form.name, address=_local(form.address))


class NewViewForm(NewQuery):
    model_config = ConfigDict(extra="forbid")


@screen.confirmation(
    "/views/new", right=Right.ACCESS_OWN, template="screens/view_new.html", question=new_view
)
def save(context: Page, form: Annotated[NewViewForm, Form()]) -> Response:
    address = _local(form.address)
    context.application.saved_views.save(form.name, address)
    return context.redirect(address, message("View saved."))


class DeleteQuery(BaseModel):
    name: Name
    owner: Name


def question(context: Page, form: Annotated[DeleteQuery, Query()]) -> DeleteView:  # noqa: ARG001 - each page takes its context
    return DeleteView(name=form.name, owner=form.owner)


class DeleteViewForm(DeleteQuery):
    model_config = ConfigDict(extra="forbid")


@screen.confirmation(
    "/views/delete",
    right=Right.ACCESS_OWN,
    template="screens/view_delete.html",
    question=question,
)
def delete(context: Page, form: Annotated[DeleteViewForm, Form()]) -> Response:
    """One's own; those of others need the right to manage access."""
    if form.owner != context.principal.actor:
        require(context.principal, Right.ACCESS_MANAGE)
    context.application.saved_views.remove(form.name, owner=form.owner)
    return context.redirect("/views", message("View deleted."))


def _local(address: str) -> str:
    found = local_path(address)
    if found is None:
        raise UsageError("a view must be an address on this server", code="view_address")
    return found
