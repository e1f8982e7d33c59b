"""Routes of pages: a right each, a `.json` twin of the same view, and errors as pages.

A browser without credentials is sent to the sign-in page, and comes back to where it wanted to go; where an owner signs
in by a link it is told how to get one. A form is posted,
carried out, and answered with a redirect, so that reloading does nothing twice. A form that is refused is shown again
on its page, with the reason.
"""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any
from urllib.parse import urlencode

from fastapi import Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.responses import RedirectResponse

from tsuzuki.model.access import AnyRight
from tsuzuki.model.errors import NotAuthenticated, TsuzukiError
from tsuzuki.services.access.permissions import require
from tsuzuki.web.idempotency import NOT_KEPT
from tsuzuki.web.pages.context import PageContext
from tsuzuki.web.pages.errors import error_page
from tsuzuki.web.pages.owner_sign_in import owner_sign_in_page
from tsuzuki.web.pages.rendering import render_page
from tsuzuki.web.pages.shared import SharedRenderings
from tsuzuki.web.pages.viewer import Viewer
from tsuzuki.web.parameters import check_query
from tsuzuki.web.problems import RequestError
from tsuzuki.web.route import ApiRoute, Handler
from tsuzuki.web.security.authentication import authenticate
from tsuzuki.web.security.bodies import BoundedRequest
from tsuzuki.web.security.rights import PUBLIC

FORM_TYPE = "application/x-www-form-urlencoded"
SIGN_IN = "/sign-in"
SETUP = "/setup"
OWNER_LINK = "/sign-in/link"
FORM = "form"

Endpoint = Callable[..., Any]


class PageRoute(ApiRoute):
    """A page or a form. A page that is public knows its viewer all the same."""

    async def _handle(self, request: BoundedRequest, answer: Handler) -> Response:
        """An empty field of a form of filters says nothing: the address is the one without it."""
        given = request.query_params.multi_items()
        if request.method == "GET" and any(not value for _, value in given):
            kept = urlencode([(name, value) for name, value in given if value])
            path = request.url.path
            return RedirectResponse(f"{path}?{kept}" if kept else path, status_code=303)
        return await super()._handle(request, answer)

    async def _admit(self, request: BoundedRequest) -> None:
        state = request.app.state
        if self.right is not None:
            request.state.principal = await authenticate(request, state.authenticator)
            require(request.state.principal, self.right)
        check_query(request, self.query_names)
        if self.body_field:
            _check_form(request)
            await request.body()

    def _refuse(self, request: Request, error: TsuzukiError) -> Response:
        if error.specific_code == "owner_link_needed":
            return owner_sign_in_page(request, status=401)
        if isinstance(error, NotAuthenticated) and error.retry_after_seconds is None and self.right:
            back = str(request.url.path) if request.method == "GET" else "/"
            if request.method == "GET" and request.url.query:
                back = f"{back}?{request.url.query}"
            return RedirectResponse(f"{SIGN_IN}?{urlencode({'next': back})}", status_code=303)
        return error_page(request, error)


class TwinRoute(ApiRoute):
    """The view of a page as JSON; errors are problem documents."""


def _check_form(request: Request) -> None:
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != FORM_TYPE:
        raise RequestError(
            f"the body is {media_type or 'of no type'}, not a form",
            status=415,
            hint=f"Send it with: Content-Type: {FORM_TYPE}. Programs use /api/v1.",
            code="not_form_type",
        )


class Screen:
    """The routes of one screen."""

    def __init__(self) -> None:
        self.routes: list[ApiRoute] = []
        self._templates: dict[Endpoint, str] = {}

    def page(
        self,
        path: str,
        *,
        right: AnyRight,
        template: str,
        twin: str | None = None,
        shared: bool = False,
    ) -> Callable[[Endpoint], Endpoint]:
        """The endpoint answers with a view, which is rendered at `path` and answered as JSON at `path.json`. It
        takes `context: Page`. It may answer with a `Response` instead. `shared`: what it shows depends on the rights
        of the viewer, and not on who that is, so that live viewers get the same rendering."""

        def register(endpoint: Endpoint) -> Endpoint:
            self._templates[endpoint] = template
            # The twin first: the last part of a path would match with its suffix.
            self._add(twin or f"{path}.json", _as_json(endpoint), right, TwinRoute)
            self._add(path, _as_page(endpoint, template, shared=shared), right, PageRoute)
            return endpoint

        return register

    def form(
        self, path: str, *, right: AnyRight, page: Endpoint | None = None
    ) -> Callable[[Endpoint], Endpoint]:
        """The endpoint carries out a posted form and answers with `context.redirect(…)`. `page` is the endpoint of the
        page that the form is on: if the form is refused with a `TsuzukiError`, that page is rendered with the reason
        as `refusal`. It is called with those arguments of the form's endpoint that it names; a page that keeps what
        was typed takes it as `form`."""
        template = self._templates[page] if page else None
        return self._form(path, right, page, template)

    def confirmation(
        self, path: str, *, right: AnyRight, template: str, question: Endpoint
    ) -> Callable[[Endpoint], Endpoint]:
        """A page that asks before something is done, and the form on it, which the endpoint carries out. `question`
        answers with the view of that page; if the form is refused it is asked again, as by `form`."""
        self.page(path, right=right, template=template)(question)
        return self._form(path, right, question, template)

    def _form(
        self, path: str, right: AnyRight, page: Endpoint | None, template: str | None
    ) -> Callable[[Endpoint], Endpoint]:
        def register(endpoint: Endpoint) -> Endpoint:
            answer = _shown_again(endpoint, page, template) if page and template else endpoint
            self._add(path, answer, right, PageRoute, "POST")
            return endpoint

        return register

    def public(self, path: str, *, method: str = "GET") -> Callable[[Endpoint], Endpoint]:
        """A page or form without credentials. It takes `viewer: PublicViewer` and answers with a `Response`."""

        def register(endpoint: Endpoint) -> Endpoint:
            self._add(path, endpoint, None, PageRoute, method)
            return endpoint

        return register

    def _add(
        self,
        path: str,
        endpoint: Endpoint,
        right: AnyRight | None,
        route_class: type[ApiRoute],
        method: str = "GET",
    ) -> None:
        route = route_class(
            path,
            endpoint,
            right=right or PUBLIC,
            method=method,
            include_in_schema=False,
            response_model=None,
            openapi_extra=NOT_KEPT,
            name=f"{endpoint.__module__}.{endpoint.__name__}",
        )
        self.routes.append(route)


def _as_page(endpoint: Endpoint, template: str, *, shared: bool) -> Endpoint:
    renderings = SharedRenderings()

    @wraps(endpoint)
    def answer(*, context: PageContext, **given: Any) -> Response:
        def render() -> Response:
            view = endpoint(context=context, **given)
            return view if isinstance(view, Response) else context.render(template, view)

        is_shared = shared and context.viewer.is_fragment
        return renderings.answer(context.viewer, render) if is_shared else render()

    return _without_form(answer)


def _as_json(endpoint: Endpoint) -> Endpoint:
    @wraps(endpoint)
    def answer(*, context: PageContext, **given: Any) -> Response:
        view = endpoint(context=context, **given)
        if isinstance(view, RedirectResponse):
            return view
        if not isinstance(view, BaseModel):
            raise TypeError(f"{endpoint.__name__} answered {type(view).__name__}, not a view")
        return JSONResponse(view.model_dump(mode="json"))

    return _without_form(answer)


def _without_form(page: Endpoint) -> Endpoint:
    """A page is asked for without the form that it shows again: no parameter of its route."""
    signature = inspect.signature(page)
    asked = [
        parameter
        for parameter in signature.parameters.values()
        if parameter.name != FORM or parameter.default is not None
    ]
    page.__signature__ = signature.replace(parameters=asked)  # type: ignore[attr-defined]
    del page.__wrapped__  # type: ignore[attr-defined] # whose signature FastAPI would read
    return page


def _shown_again(endpoint: Endpoint, page: Endpoint, template: str) -> Endpoint:
    """Carry out a form; if it is refused, render its page with the reason."""
    names = inspect.signature(page).parameters

    @wraps(endpoint)
    def answer(*, context: PageContext, **given: Any) -> Response:
        try:
            carried_out: Response = endpoint(context=context, **given)
        except TsuzukiError as error:
            kept = {name: given[name] for name in names if name in given}
            try:
                view = page(context=context, **kept)
            except TsuzukiError:  # what it was about is gone, or the database cannot be reached
                raise error from None
            return context.refused(template, view, error)
        return carried_out

    return answer


def render_public(viewer: Viewer, template: str, *, status: int = 200, **values: Any) -> Response:
    return render_page(viewer, template, values, status=status)
