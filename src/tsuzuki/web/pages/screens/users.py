"""Users: the people who sign in. Add them, set what they may do, let them in no more."""

from typing import Annotated

from fastapi import Form, Response
from pydantic import BaseModel, ConfigDict, Field

from tsuzuki.model.access import Right, Role
from tsuzuki.model.errors import TsuzukiError
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
from tsuzuki.web.problems import Problem

screen = Screen()

ROLES = {
    Role.VIEWER: message("can view jobs, runs and collections"),
    Role.OPERATOR: message(
        "can also start, cancel and retry runs, and view code, settings and the audit log"
    ),
    Role.ADMIN: message("can also edit jobs and settings, and manage users"),
}
ENABLED = Word(message("Enabled"), "succeeded", "good")
DISABLED = Word(message("Disabled"), "canceled", "quiet")
Password = Annotated[str, Field(max_length=PASSWORD_LENGTH_MAX)]


class NewUserForm(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(max_length=NAME_LENGTH_MAX * 2)] = ""
    role: Role = Role.VIEWER
    password: Password = ""


class UsersView(Model):
    """`name` and `role` are what a refused form was sent with; `problem` is why."""

    users: list[UserOut]
    name: str = ""
    role: Role = Role.VIEWER
    problem: Problem | None = None

    def state(self, user: UserOut) -> Word:
        return ENABLED if user.disabled_at is None else DISABLED

    def roles(self) -> dict[Role, str]:
        return ROLES


class UserPage(Model):
    """`is_self`: the viewer is this user, and changes the password with the current one."""

    user: UserOut
    sessions: list[SessionOut]
    tokens: list[TokenOut]
    is_self: bool
    problem: Problem | None = None

    @property
    def state(self) -> Word:
        return ENABLED if self.user.disabled_at is None else DISABLED

    def roles(self) -> dict[Role, str]:
        return ROLES


class RoleForm(BaseModel):
    model_config = ConfigDict(extra="forbid")

    role: Role


class UserPasswordForm(BaseModel):
    model_config = ConfigDict(extra="forbid")

    password: Password = ""


@screen.page("/users", right=Right.ACCESS_MANAGE, template="screens/users.html")
def users_page(context: Page) -> UsersView:
    return _users(context)


def _users(context: PageContext) -> UsersView:
    found = context.application.users.find(by=context.principal)
    # The first user manages the others.
    role = Role.VIEWER if found else Role.ADMIN
    return UsersView(users=[user_out(view) for view in found], role=role)


@screen.form("/users", right=Right.ACCESS_MANAGE)
def add(context: Page, form: Annotated[NewUserForm, Form()]) -> Response:
    try:
        added = context.application.users.add(
            form.name.strip(), form.password, role=form.role, by=context.principal
        )
    except TsuzukiError as error:
        problem = context.problem(error)
        kept = {"name": form.name, "role": form.role, "problem": problem}
        view = _users(context).model_copy(update=kept)
        return context.render("screens/users.html", view, status=problem.status)
    text = message("%(name)s can now sign in.")
    return context.redirect(f"/users/{path_part(added.name)}", text, name=added.name)


@screen.page("/users/{name}", right=Right.ACCESS_MANAGE, template="screens/user.html")
def user_page(context: Page, name: UserName) -> UserPage:
    return _user(context, name)


def _user(context: PageContext, name: str, problem: Problem | None = None) -> UserPage:
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
        problem=problem,
    )


def _refused(context: PageContext, name: str, error: TsuzukiError, template: str) -> Response:
    problem = context.problem(error)
    return context.render(template, _user(context, name, problem), status=problem.status)


@screen.form("/users/{name}/role", right=Right.ACCESS_MANAGE)
def set_role(context: Page, name: UserName, form: Annotated[RoleForm, Form()]) -> Response:
    try:
        changed = context.application.users.set_role(name, form.role, by=context.principal)
    except TsuzukiError as error:
        return _refused(context, name, error, "screens/user.html")
    text = message("%(name)s now has the role %(role)s.")
    return _to(context, name, text, role=changed.role)


@screen.form("/users/{name}/password", right=Right.ACCESS_MANAGE)
def set_password(
    context: Page, name: UserName, form: Annotated[UserPasswordForm, Form()]
) -> Response:
    """Of another user; one's own is changed with the current one, at /password."""
    try:
        context.application.users.set_password(name, form.password, by=context.principal)
    except TsuzukiError as error:
        return _refused(context, name, error, "screens/user.html")
    return _to(context, name, message("Password of %(name)s changed; all sessions ended."))


def _to(context: PageContext, name: str, text: str, **values: object) -> Response:
    return context.redirect(f"/users/{path_part(name)}", text, name=name, **values)


@screen.page(
    "/users/{name}/disable", right=Right.ACCESS_MANAGE, template="screens/user_disable.html"
)
def confirm_disable(context: Page, name: UserName) -> UserPage:
    return _user(context, name)


@screen.form("/users/{name}/disable", right=Right.ACCESS_MANAGE)
def disable(context: Page, name: UserName) -> Response:
    try:
        context.application.users.disable(name, by=context.principal)
    except TsuzukiError as error:
        return _refused(context, name, error, "screens/user_disable.html")
    return _to(context, name, message("User %(name)s disabled."))


@screen.form("/users/{name}/enable", right=Right.ACCESS_MANAGE)
def enable(context: Page, name: UserName) -> Response:
    try:
        context.application.users.enable(name, by=context.principal)
    except TsuzukiError as error:
        return _refused(context, name, error, "screens/user.html")
    return _to(context, name, message("User %(name)s enabled."))


@screen.page(
    "/users/{name}/end-sessions",
    right=Right.ACCESS_MANAGE,
    template="screens/user_end_sessions.html",
)
def confirm_end_sessions(context: Page, name: UserName) -> UserPage:
    return _user(context, name)


@screen.form("/users/{name}/end-sessions", right=Right.ACCESS_MANAGE)
def end_sessions(context: Page, name: UserName) -> Response:
    """All but the one that is looked from."""
    user = context.application.users.get(name, by=context.principal)
    ended = context.application.sessions.end_all(
        by=context.principal, user=user.name, keep_own=True
    )
    text = message("Sessions of %(name)s ended: %(count)s.")
    return _to(context, user.name, text, count=ended)


@screen.page("/users/{name}/remove", right=Right.ACCESS_MANAGE, template="screens/user_remove.html")
def confirm_remove(context: Page, name: UserName) -> UserPage:
    return _user(context, name)


@screen.form("/users/{name}/remove", right=Right.ACCESS_MANAGE)
def remove(context: Page, name: UserName) -> Response:
    try:
        context.application.users.remove(name, by=context.principal)
    except TsuzukiError as error:
        return _refused(context, name, error, "screens/user_remove.html")
    return context.redirect("/users", message("User %(name)s removed."), name=name)
