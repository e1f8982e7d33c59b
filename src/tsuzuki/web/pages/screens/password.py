"""One's own password, changed with the current one."""

from typing import Annotated

from fastapi import Form, Response
from pydantic import BaseModel, ConfigDict, Field

from tsuzuki.model.access import Right
from tsuzuki.model.errors import Conflict
from tsuzuki.services.access.passwords import LENGTH_MAX
from tsuzuki.web.answers import Model
from tsuzuki.web.pages.context import Page, PageContext
from tsuzuki.web.pages.language import message
from tsuzuki.web.pages.route import Screen

screen = Screen()

Password = Annotated[str, Field(max_length=LENGTH_MAX)]


class PasswordView(Model):
    """`user` is null for a viewer that is no user, and has no password."""

    user: str | None


class OwnPasswordForm(BaseModel):
    model_config = ConfigDict(extra="forbid")

    current: Password = ""
    password: Password = ""


@screen.page("/password", right=Right.ACCESS_OWN, template="screens/password.html")
def password_page(context: Page) -> PasswordView:
    return PasswordView(user=_own_name(context))


def _own_name(context: PageContext) -> str | None:
    by = context.principal
    if by.user_id is None:
        return None
    found = context.application.users.find(by=by)
    return next((user.name for user in found if user.id == by.user_id), None)


@screen.form("/password", right=Right.ACCESS_OWN, page=password_page)
def change(context: Page, form: Annotated[OwnPasswordForm, Form()]) -> Response:
    name = _own_name(context)
    if name is None:
        raise Conflict("you are no user, and have no password", code="no_user")
    context.application.users.set_password(
        name, form.password, by=context.principal, current=form.current
    )
    text = message("Password changed. Your other sessions have ended.")
    return context.redirect("/sessions", text)
