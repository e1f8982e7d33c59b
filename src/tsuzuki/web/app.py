"""Builds the HTTP application: routes, guards, and the OpenAPI document."""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from importlib.metadata import version

import anyio.to_thread
from fastapi import FastAPI, Request, Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from tsuzuki.model.errors import NotFound
from tsuzuki.web import documents, health, hooks, sign_in
from tsuzuki.web.api import (
    audit,
    books,
    bulk,
    codeindex,
    commit_reports,
    commits,
    events,
    failures,
    feeds,
    jobs,
    run_logs,
    runs,
    sessions,
    settings,
    statistics,
    tokens,
    users,
    workers,
)
from tsuzuki.web.problems import RequestError, problem_response
from tsuzuki.web.route import unexpected
from tsuzuki.web.run_intake import RunIntake
from tsuzuki.web.security.authentication import Authenticator
from tsuzuki.web.security.guard import Guard
from tsuzuki.web.security.origins import LOOPBACK_NAMES
from tsuzuki.web.security.shared_lookup import SharedLookup
from tsuzuki.web.waiting import RunWaits
from tsuzuki.wiring.application import Application

PREFIX = "/api/v1"
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
    tokens,
    users,
    sessions,
    commits,
    commit_reports,
    books,
    feeds,
    codeindex,
)


def build_app(
    application: Application,
    authenticator: Authenticator,
    *,
    allowed_hosts: Collection[str] = LOOPBACK_NAMES,
) -> FastAPI:
    """The application, not yet served. `allowed_hosts` are the names it is known by."""
    app = FastAPI(
        title="Tsuzuki",
        version=version("tsuzuki"),
        description=documents.DESCRIPTION,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan,
        redirect_slashes=False,
        generate_unique_id_function=_operation_id,
    )
    app.state.application = application
    app.state.authenticator = authenticator
    app.state.lookups = SharedLookup()
    for noun in NOUNS:
        app.include_router(noun.router, prefix=PREFIX)
    app.include_router(sign_in.router, prefix=PREFIX)
    for public in (hooks, health, documents):
        app.include_router(public.router)
    app.add_middleware(Guard, allowed_hosts=allowed_hosts)
    app.add_exception_handler(HTTPException, _answer_http_error)
    app.add_exception_handler(Exception, _answer_unexpected)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS_MAX
    app.state.stopping = asyncio.Event()
    app.state.run_waits = RunWaits(app.state.application, app.state.stopping)
    app.state.run_intake = RunIntake(app.state.application.runs)
    yield


def _operation_id(route: APIRoute) -> str:
    return route.name


async def _answer_http_error(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise TypeError(type(error))
    path = request.url.path
    if error.status_code == 404:
        hint = "The routes are listed at /docs."
        return problem_response(NotFound(f"there is no {path}", hint=hint, code="no_such_path"))
    message = f"{request.method} {path}: {error.detail}"
    return problem_response(
        RequestError(
            message,
            status=error.status_code,
            headers=error.headers,
            code="method_not_allowed" if error.status_code == 405 else "bad_request",
        )
    )


async def _answer_unexpected(_request: Request, _error: Exception) -> Response:
    return problem_response(unexpected())
