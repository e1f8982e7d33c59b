"""`/users`: people who sign in with a password."""

from pydantic import ConfigDict, Field
from pydantic.json_schema import SkipJsonSchema

from tsuzuki.model.access import Right, Role
from tsuzuki.model.errors import NotAuthenticated
from tsuzuki.services.access.users import User
from tsuzuki.web.answers import Flag, Model, Moment
from tsuzuki.web.api.names import GivenName, NewPassword, Password, UserName
from tsuzuki.web.context import Context
from tsuzuki.web.idempotency import NOT_KEPT
from tsuzuki.web.paging import Page, PageQuery
from tsuzuki.web.problems import InvalidRequest, PartProblem
from tsuzuki.web.route import ApiRouter

router = ApiRouter("access")


class UserOut(Model):
    """A user without the password."""

    id: int
    name: str
    role: Role
    created_at: Moment
    created_by: str
    password_changed_at: Moment
    disabled_at: Moment | None
    last_sign_in_at: Moment | None


class NewUser(Model):
    name: GivenName
    password: NewPassword
    role: Role


class UserChange(Model):
    """One of both."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "maxProperties": 1})

    role: Role | SkipJsonSchema[None] = None
    disabled: Flag | SkipJsonSchema[None] = None


class PasswordChange(Model):
    password: NewPassword
    current: Password | None = Field(
        None, description="Current password; required to change your own."
    )


def user_out(view: User) -> UserOut:
    return UserOut(**view.as_dict())


def _name(view: User) -> str:
    return view.name


@router.get("/users", right=Right.ACCESS_OWN)
def list_users(context: Context, query: PageQuery) -> Page[UserOut]:
    """List users by name: all for a caller that manages access, else the caller."""
    views = context.application.users.find(by=context.principal)
    return context.page_of_rows(
        query,
        views,
        position=_name,
        item=user_out,
    )


@router.post(
    "/users", right=Right.ACCESS_MANAGE, refuses=[409], status_code=201, openapi_extra=NOT_KEPT
)
def add_user(context: Context, body: NewUser) -> UserOut:
    """Add a user with no more rights than the caller has. A name that is taken answers 409."""
    users = context.application.users
    return user_out(users.add(body.name, body.password, role=body.role, by=context.principal))


@router.get("/users/{name}", right=Right.ACCESS_OWN, refuses=[404])
def get_user(context: Context, name: UserName) -> UserOut:
    """One user."""
    return user_out(context.application.users.get(name, by=context.principal))


@router.patch("/users/{name}", right=Right.ACCESS_MANAGE, refuses=[404, 409])
def change_user(context: Context, name: UserName, body: UserChange) -> UserOut:
    """Give a user another role, or disable or enable the user. The last admin answers 409."""
    users, by = context.application.users, context.principal
    if (body.role is None) == (body.disabled is None):
        message = "give either role or disabled, one change at a time"
        raise InvalidRequest([PartProblem(where="body", message=message, code="one_change")])
    if body.role is not None:
        return user_out(users.set_role(name, body.role, by=by))
    return user_out((users.disable if body.disabled else users.enable)(name, by=by))


@router.put(
    "/users/{name}/password", right=Right.ACCESS_OWN, refuses=[404, 409, 429], status_code=204
)
def set_password(context: Context, name: UserName, body: PasswordChange) -> None:
    """Change a password; the sessions of that user end, but not the one of the request."""
    try:
        context.application.users.set_password(
            name, body.password, by=context.principal, current=body.current
        )
    except NotAuthenticated as problem:
        if problem.specific_code != "password_wrong":
            raise
        # The caller is known: what is wrong is a part of the body, not the session.
        part = PartProblem(where="body.current", message=problem.message, code="password_wrong")
        raise InvalidRequest([part]) from problem


@router.delete("/users/{name}", right=Right.ACCESS_MANAGE, refuses=[404, 409], status_code=204)
def remove_user(context: Context, name: UserName) -> None:
    """Remove a user with all sessions and tokens. The last admin answers 409."""
    context.application.users.remove(name, by=context.principal)
