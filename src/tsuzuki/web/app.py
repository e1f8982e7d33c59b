"""Builds the HTTP application: routes, guards, and the OpenAPI document."""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, suppress
from functools import partial
from importlib.metadata import version

import anyio.to_thread
from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.routing import Match, Route

from tsuzuki.model.clock import SystemClock
from tsuzuki.model.errors import NotFound, TsuzukiError
from tsuzuki.web import agents, documents, health, hooks, sign_in
from tsuzuki.web.api import (
    audit,
    bulk,
    database,
    events,
    failures,
    jobs,
    me,
    run_logs,
    runs,
    sessions,
    settings,
    statistics,
    tokens,
    users,
    verifications,
    workers,
)
from tsuzuki.web.pages import assets
from tsuzuki.web.pages.errors import error_page, wants_page
from tsuzuki.web.pages.screens import include_pages
from tsuzuki.web.problems import RequestError, problem_response
from tsuzuki.web.route import ApiRouter, unexpected
from tsuzuki.web.run_intake import RunIntake
from tsuzuki.web.security.authentication import Authenticator, authenticate
from tsuzuki.web.security.guard import RequestGuard
from tsuzuki.web.security.origins import LOOPBACK_NAMES
from tsuzuki.web.security.refusal_log import RefusalLog
from tsuzuki.web.security.session_cookie import SessionCookie
from tsuzuki.web.security.shared_lookup import SharedLookup
from tsuzuki.web.stream import route as stream_route
from tsuzuki.web.stream.credentials import LiveCredentials
from tsuzuki.web.stream.hub import Hub
from tsuzuki.web.stream.source import source_of
from tsuzuki.web.waiting import RunWaits
from tsuzuki.wiring.application import Application
from tsuzuki.wiring.collectors import usable_parts

THREADS_MAX = 12
"""How many requests use services at once; the pool of database connections is larger."""

NOUNS = (
    jobs,
    runs,
    run_logs,
    bulk,
    failures,
    statistics,
    events,
    workers,
    settings,
    audit,
    database,
    tokens,
    users,
    sessions,
    verifications,
    me,
    stream_route,
)


def build_app(
    application: Application,
    authenticator: Authenticator,
    *,
    installation: str,
    allowed_hosts: Collection[str] = LOOPBACK_NAMES,
    owner: str | None = None,
) -> FastAPI:
    """The application, not yet served. `installation` names its cookies, `allowed_hosts` are the names it is known by,
    and `owner` is the actor who signs in by a link, if one does."""
    app = FastAPI(
        title="Tsuzuki",
        version=version("tsuzuki"),
        description=documents.DESCRIPTION,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan,
        redirect_slashes=False,
    )
    app.state.application = application
    app.state.authenticator = authenticator
    app.state.agents = agents.Agents(application)
    app.state.owner = owner
    app.state.lookups = SharedLookup()
    app.state.session_cookie = SessionCookie(installation)
    app.state.refusal_log = RefusalLog(SystemClock())
    for router in (*(noun.router for noun in NOUNS), *_collector_routers()):
        app.routes.extend(router.routes)
    for part in (sign_in, agents, hooks, health, documents, assets):
        app.routes.extend(part.router.routes)
    include_pages(app)
    app.add_middleware(
        RequestGuard, allowed_hosts=allowed_hosts, session_cookies=app.state.session_cookie.names
    )
    app.add_exception_handler(HTTPException, _answer_http_error)
    app.add_exception_handler(Exception, _answer_unexpected)
    return app


def _collector_routers() -> list[ApiRouter]:
    found = usable_parts(lambda one: [one.load(target) for target in one.routes])
    return [router for routers in found.values() for router in routers]


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS_MAX
    app.state.stopping = asyncio.Event()
    application = app.state.application
    app.state.run_waits = RunWaits(application, app.state.stopping)
    app.state.run_intake = RunIntake(application.runs)
    app.state.stream_hub = Hub(
        source_of=partial(source_of, application),
        listen=application.changes.listen,
        credentials=LiveCredentials(application, app.state.authenticator),
        stopping=app.state.stopping,
    )
    yield
    await app.state.stream_hub.stop()
    app.state.agents.close()


async def _answer_http_error(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise TypeError(type(error))
    path = request.url.path
    if error.status_code == 404:
        is_page = wants_page(request)
        hint = "Use the menu, or go back." if is_page else "See /docs for all routes."
        unknown = NotFound(f"there is no {path}", hint=hint, code="no_such_path")
        if is_page:
            await _recognise(request)
        return _refusal(request, unknown)
    if error.status_code == 405:
        return _answer_other_method(request)
    message = f"{request.method} {path}: {error.detail}"
    status, headers = error.status_code, error.headers
    return _refusal(request, RequestError(message, status=status, headers=headers))


async def _recognise(request: Request) -> None:
    """Let a page that no route answers have the menu of its viewer, if there is one."""
    with suppress(TsuzukiError):
        request.state.principal = await authenticate(request, request.app.state.authenticator)


def _answer_other_method(request: Request) -> Response:
    """A method that the path has not; or OPTIONS, which asks for those that it has. The router itself knows only
    those of the first route of a path."""
    headers = {"Allow": ", ".join(_methods(request))}
    if request.method == "OPTIONS":
        return Response(status_code=204, headers=headers)
    refused = RequestError(
        f"{request.url.path} does not support {request.method}",
        status=405,
        headers=headers,
        hint=f"Supported methods: {headers['Allow']}.",
        code="method_not_allowed",
    )
    return _refusal(request, refused)


def _refusal(request: Request, error: TsuzukiError) -> Response:
    return error_page(request, error) if wants_page(request) else problem_response(error)


def _methods(request: Request) -> list[str]:
    """The methods of a path. One that a route names in full has those of that route, as documented: `jobs/apply`
    has not those of `jobs/{name}`. HEAD is answered like GET, without the body."""
    matching = [
        route
        for route in request.app.routes
        if isinstance(route, Route) and route.matches(request.scope)[0] is not Match.NONE
    ]
    named = [route for route in matching if route.path == request.url.path]
    found = {method for route in named or matching for method in route.methods or ()}
    return sorted(found | {"OPTIONS"} | ({"HEAD"} if "GET" in found else set()))


async def _answer_unexpected(_request: Request, _error: Exception) -> Response:
    return problem_response(unexpected())
