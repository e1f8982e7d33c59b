"""What the endpoint of a page is given: the context of a request, the viewer, and how to answer."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request, Response
from pydantic import BaseModel
from starlette.responses import RedirectResponse

from tsuzuki.model.errors import TsuzukiError
from tsuzuki.web.context import RequestContext, request_context
from tsuzuki.web.pages.flash import Flash, keep_flash
from tsuzuki.web.pages.rendering import render_page
from tsuzuki.web.pages.viewer import Viewer, viewer_of
from tsuzuki.web.problems import Problem, problem_of


@dataclass(frozen=True, kw_only=True)
class PageContext(RequestContext):
    viewer: Viewer

    def redirect(self, path: object, text: str | None = None, **values: Any) -> Response:
        """Go on to a page (303), which shows the message once. Mark its text with `message(…)`."""
        response = RedirectResponse(str(path), status_code=303)
        if text is not None:
            key = self.application.api_requests.cursor_key
            keep_flash(response, Flash(text=text, values=values), key)
        return response

    def problem(self, error: TsuzukiError) -> Problem:
        """What a page tells of an error, without the secrets in it."""
        return problem_of(error, self.application.mask)

    def render(self, template: str, view: BaseModel, *, status: int = 200, **more: Any) -> Response:
        """A page that is not the answer of its own route, such as a form with what is wrong in it."""
        values: Mapping[str, Any] = {"view": view, **more}
        return render_page(self.viewer, template, dict(values), status=status)

    def refused(self, template: str, view: BaseModel, error: TsuzukiError) -> Response:
        """The page of a form again, with the reason why the form was refused."""
        problem = self.problem(error)
        # Who asks is known: a wrong password is a mistake in the form, not a missing sign-in.
        status = 422 if problem.status == 401 else problem.status
        return self.render(template, view, status=status, refusal=problem)


async def page_context(request: Request) -> PageContext:
    base = request_context(request)
    return PageContext(**vars(base), viewer=viewer_of(request))


async def public_viewer(request: Request) -> Viewer:
    return viewer_of(request)


Page = Annotated[PageContext, Depends(page_context)]
PublicViewer = Annotated[Viewer, Depends(public_viewer)]
"""Of a page that needs no credentials."""
