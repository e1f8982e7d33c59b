"""People who sign in: add them, set their roles, disable them."""

from typing import Annotated

from fastapi import Form, Response
from pydantic import BaseModel, ConfigDict, Field

from tsuzuki.model.access import Right, Role
from tsuzuki.services.access.passwords import LENGTH_MAX as PASSWORD_LENGTH_MAX
from tsuzuki.services.access.permissions import NAME_LENGTH_MAX
from tsuzuki.web.answers import Model
from tsuzuki.web.api.names import UserName
from tsuzuki.web.api.sessions import SessionOut
from tsuzuki.web.api.tokens import TokenOut, token_out
from tsuzuki.web.api.users import UserOut, user_out
from tsuzuki.web.pages.context import Page, PageContext
from tsuzuki.web.pages.language import message
from tsuzuki.web.pages.links import path_part
from tsuzuki.web.pages.route import Screen
from tsuzuki.web.pages.words import Word

screen = Screen()

ENABLED = Word(message("Enabled"), "succeeded", "good")
DISABLED = Word(message("Disabled"), "canceled", "quiet")
Password = Annotated[str, Field(max_length=PASSWORD_LENGTH_MAX)]


class NewUserForm(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(max_length=NAME_LENGTH_MAX * 2)] = ""
    role: Role = Role.VIEWER
    password: Password = ""


class UsersView(Model):
    """`name` and `role` are what a refused form was sent with."""

    users: list[UserOut]
    name: str = ""
    role: Role = Role.VIEWER

    def state(self, user: UserOut) -> Word:
        return ENABLED if user.disabled_at is None else DISABLED


class UserPage(Model):
    """`is_self`: the viewer is this user, and changes the password with the current one."""

    user: UserOut
    sessions: list[SessionOut]
    tokens: list[TokenOut]
    is_self: bool

    @property
    def state(self) -> Word:
        return ENABLED if self.user.disabled_at is None else DISABLED


class RoleForm(BaseModel):
    model_config = ConfigDict(extra="forbid")

    role: Role


class UserPasswordForm(BaseModel):
    model_config = ConfigDict(extra="forbid")

    password: Password = ""


@screen.page("/users", right=Right.ACCESS_MANAGE, template="screens/users.html")
def users_page(context: Page, form: NewUserForm | None = None) -> UsersView:
    found = context.application.users.find(by=context.principal)
    if form:
        return UsersView(users=[user_out(view) for view in found], name=form.name, role=form.role)
    # The first user manages the others.
    role = Role.VIEWER if found else Role.ADMIN
    return UsersView(users=[user_out(view) for view in found], role=role)


@screen.form("/users", right=Right.ACCESS_MANAGE, page=users_page)
def add(context: Page, form: Annotated[NewUserForm, Form()]) -> Response:
    added = context.application.users.add(
        form.name.strip(), form.password, role=form.role, by=context.principal
    )
    text = message("%(name)s can now sign in.")
    return _to(context, added.name, text)


@screen.page("/users/{name}", right=Right.ACCESS_MANAGE, template="screens/user.html")
def user_page(context: Page, name: UserName) -> UserPage:
    application, by = context.application, context.principal
    user = application.users.get(name, by=by)
    sessions = application.sessions.find(by=by, every_user=True)
    tokens = application.tokens.find(by=by)
    return UserPage(
        user=user_out(user),
        sessions=[
            SessionOut(**view.as_dict(), is_current=view.id == by.session_id)
            for view in sessions
            if view.user == user.name
        ],
        tokens=[token_out(view) for view in tokens if view.user == user.name],
        is_self=user.id == by.user_id,
    )


def _to(context: PageContext, name: str, text: str, **values: object) -> Response:
    return context.redirect(f"/users/{path_part(name)}", text, name=name, **values)


@screen.form("/users/{name}/role", right=Right.ACCESS_MANAGE, page=user_page)
def set_role(context: Page, name: UserName, form: Annotated[RoleForm, Form()]) -> Response:
    changed = context.application.users.set_role(name, form.role, by=context.principal)
    return _to(context, name, message("%(name)s now has the role %(role)s."), role=changed.role)


@screen.form("/users/{name}/password", right=Right.ACCESS_MANAGE, page=user_page)
def set_password(
    context: Page, name: UserName, form: Annotated[UserPasswordForm, Form()]
) -> Response:
    """Of another user; one's own is changed with the current one, at /password."""
    context.application.users.set_password(name, form.password, by=context.principal)
    return _to(context, name, message("Password of %(name)s changed; all sessions ended."))


@screen.confirmation(
    "/users/{name}/disable",
    right=Right.ACCESS_MANAGE,
    template="screens/user_disable.html",
    question=user_page,
)
def disable(context: Page, name: UserName) -> Response:
    context.application.users.disable(name, by=context.principal)
    return _to(context, name, message("User %(name)s disabled."))


@screen.form("/users/{name}/enable", right=Right.ACCESS_MANAGE, page=user_page)
def enable(context: Page, name: UserName) -> Response:
    context.application.users.enable(name, by=context.principal)
    return _to(context, name, message("User %(name)s enabled."))


@screen.confirmation(
    "/users/{name}/end-sessions",
    right=Right.ACCESS_MANAGE,
    template="screens/user_end_sessions.html",
    question=user_page,
)
def end_sessions(context: Page, name: UserName) -> Response:
    """All but the one that is looked from."""
    user = context.application.users.get(name, by=context.principal)
    ended = context.application.sessions.end_all(
        by=context.principal, user=user.name, keep_own=True
    )
    text = message("Sessions of %(name)s ended: %(count)s.")
    return _to(context, user.name, text, count=ended)


@screen.confirmation(
    "/users/{name}/remove",
    right=Right.ACCESS_MANAGE,
    template="screens/user_remove.html",
    question=user_page,
)
def remove(context: Page, name: UserName) -> Response:
    context.application.users.remove(name, by=context.principal)
    return context.redirect("/users", message("User %(name)s removed."), name=name)
