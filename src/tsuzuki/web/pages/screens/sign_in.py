"""Signing in and out, and the page on which the first admin is made."""

from typing import Annotated

from fastapi import Form, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse

from tsuzuki.model.access import Right
from tsuzuki.model.errors import NotAuthenticated, TsuzukiError
from tsuzuki.services.access.passwords import LENGTH_MAX as PASSWORD_LENGTH_MAX
from tsuzuki.services.access.permissions import NAME_LENGTH_MAX
from tsuzuki.services.access.sessions import SignedIn, SignInPlace
from tsuzuki.web.pages.context import Page, PublicViewer
from tsuzuki.web.pages.language import message
from tsuzuki.web.pages.links import local_path
from tsuzuki.web.pages.owner_sign_in import owner_sign_in_page
from tsuzuki.web.pages.route import SETUP, SIGN_IN, Screen, render_public
from tsuzuki.web.pages.viewer import Viewer
from tsuzuki.web.problems import status_of
from tsuzuki.web.security.session_cookie import session_secret
from tsuzuki.web.sign_in import end_own_session, keep_session, redeem_setup_code

screen = Screen()

REFUSED = message("Wrong name or password.")
LIMITED = message("Too many attempts. Try again in %(seconds)s s.")
Name = Annotated[str, Field(max_length=NAME_LENGTH_MAX)]
Password = Annotated[str, Field(max_length=PASSWORD_LENGTH_MAX)]
NextPath = Annotated[str | None, Query(alias="next", max_length=2000)]


class SignInForm(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: Name = ""
    password: Password = ""
    next: Annotated[str, Field(max_length=2000)] = "/"


class SetupForm(BaseModel):
    model_config = ConfigDict(extra="forbid")

    code: Annotated[str, Field(max_length=100)] = ""
    name: Name = ""
    password: Password = ""


@screen.public(SIGN_IN)
def sign_in_page(request: Request, viewer: PublicViewer, next_path: NextPath = None) -> Response:
    if not request.app.state.application.users.any():
        if request.app.state.owner is not None:
            return owner_sign_in_page(request, status=200)
        return RedirectResponse(SETUP, status_code=303)
    return _sign_in(viewer, SignInForm(next=local_path(next_path) or "/"))


def _sign_in(viewer: Viewer, form: SignInForm, problem: TsuzukiError | None = None) -> Response:
    wait = None if problem is None else problem.retry_after_seconds
    return render_public(
        viewer,
        "screens/sign_in.html",
        status=200 if problem is None else status_of(problem),
        form=form,
        problem=None if problem is None else (LIMITED if wait else REFUSED),
        seconds=round(wait or 0),
    )


@screen.public(SIGN_IN, method="POST")
def sign_in(
    request: Request, viewer: PublicViewer, form: Annotated[SignInForm, Form()]
) -> Response:
    try:
        signed_in = _start_session(request, form.name, form.password)
    except NotAuthenticated as problem:
        return _sign_in(viewer, form, problem)
    response = RedirectResponse(local_path(form.next) or "/", status_code=303)
    keep_session(request, response, signed_in)
    return response


def _start_session(request: Request, name: str, password: str) -> SignedIn:
    place = SignInPlace(
        address=request.client.host if request.client else None,
        user_agent=request.headers.get("user-agent"),
    )
    signed_in: SignedIn = request.app.state.application.sessions.sign_in(
        name, password, place=place, replacing=session_secret(request)
    )
    return signed_in


@screen.form("/sign-out", right=Right.ACCESS_OWN)
def sign_out(request: Request, context: Page) -> Response:
    response = context.redirect(SIGN_IN)
    end_own_session(request, response)
    response.headers["Clear-Site-Data"] = '"cache"'
    return response


@screen.public(SETUP)
def setup_page(request: Request, viewer: PublicViewer) -> Response:
    if request.app.state.application.users.any():
        return RedirectResponse(SIGN_IN, status_code=303)
    return render_public(viewer, "screens/setup.html", form=SetupForm(), problem=None)


@screen.public(SETUP, method="POST")
async def set_up(
    request: Request, viewer: PublicViewer, form: Annotated[SetupForm, Form()]
) -> Response:
    """Make the first admin, and sign in."""
    try:
        await redeem_setup_code(request, form.code, form.name, form.password)
    except TsuzukiError as problem:
        status = status_of(problem)
        kept = form.model_copy(update={"password": ""})
        return render_public(
            viewer, "screens/setup.html", status=status, form=kept, problem=problem
        )
    response = RedirectResponse("/", status_code=303)
    signed_in = await run_in_threadpool(_start_session, request, form.name, form.password)
    keep_session(request, response, signed_in)
    return response
