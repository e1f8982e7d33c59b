"""The link by which the owner of a server without users signs in.

Opening the address uses nothing up: a form does, which our script sends at once. So a program that looks at the address
ahead of its reader (a preview, a prefetch, HEAD) leaves the link as it is.
"""

from typing import Annotated

from fastapi import Form, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse

from tsuzuki.model.errors import NotAuthenticated, TsuzukiError
from tsuzuki.services.access.owner_links import SESSION_SECONDS
from tsuzuki.web.pages.context import PublicViewer
from tsuzuki.web.pages.owner_sign_in import owner_sign_in_page
from tsuzuki.web.pages.route import OWNER_LINK, SIGN_IN, Screen, render_public
from tsuzuki.web.security.authentication import authenticate
from tsuzuki.web.security.refusal_log import note_refusal
from tsuzuki.web.security.session_cookie import session_cookie, session_secret

screen = Screen()

Token = Annotated[str, Field(max_length=200)]


class LinkForm(BaseModel):
    model_config = ConfigDict(extra="forbid")

    token: Token = ""


@screen.public(OWNER_LINK)
def link_page(
    request: Request, viewer: PublicViewer, token: Annotated[Token | None, Query()] = None
) -> Response:
    if request.app.state.owner is None or token is None:
        return RedirectResponse(SIGN_IN, status_code=303)
    return render_public(viewer, "screens/owner_link.html", token=token)


@screen.public(OWNER_LINK, method="POST")
async def open_link(request: Request, form: Annotated[LinkForm, Form()]) -> Response:
    """Use the link up, and go on without it in the address. A browser that is signed in need not know that its link
    was opened before: by itself, when its page was shown a second time."""
    state, response = request.app.state, RedirectResponse("/", status_code=303)
    if state.owner is None:
        return RedirectResponse(SIGN_IN, status_code=303)
    try:
        session = await run_in_threadpool(
            state.application.owner_links.open,
            form.token,
            actor=state.owner,
            replacing=session_secret(request),
        )
    except NotAuthenticated:
        note_refusal(request, "owner link")
        return response if await _is_signed_in(request) else await _refused(request)
    session_cookie(request).keep(request, response, session.secret, seconds=SESSION_SECONDS)
    return response


async def _is_signed_in(request: Request) -> bool:
    if session_secret(request) is None:
        return False
    try:
        await authenticate(request, request.app.state.authenticator)
    except TsuzukiError:
        return False
    return True


async def _refused(request: Request) -> Response:
    if await run_in_threadpool(request.app.state.application.users.any):
        return RedirectResponse(SIGN_IN, status_code=303)
    return owner_sign_in_page(request, status=401, is_refused=True)
