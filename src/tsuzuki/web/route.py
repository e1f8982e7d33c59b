"""A route of the API: authenticates, checks the right, reads the body, and answers every error as a problem.

In that order, so that a request that may not come in learns nothing about what it would find. A route without a
declared right cannot be made.
"""

import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import cached_property
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.params import Depends
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from tsuzuki.model.errors import TsuzukiError
from tsuzuki.services.access.permissions import require
from tsuzuki.services.read_limit import READ_SECONDS, limited_reads
from tsuzuki.services.server_log import is_enabled_for, log
from tsuzuki.web import idempotency
from tsuzuki.web.parameters import check_query, invalid_request, query_names
from tsuzuki.web.problems import (
    MEDIA_TYPE,
    Problem,
    RequestError,
    problem_response,
)
from tsuzuki.web.security.authentication import authenticate
from tsuzuki.web.security.bodies import (
    BODY_BYTES_MAX,
    PUBLIC_BODY_BYTES_MAX,
    BoundedRequest,
    check_content_type,
)
from tsuzuki.web.security.rights import RequiredRight

Handler = Callable[[Request], Coroutine[Any, Any, Response]]

PREFIX = "/api/v1"
CODES_OF_ALL = (400, 421, 422, 500, 503)
CODES_OF_PROTECTED = (401, 403)
CODES_WITH_BODY = (408, 413, 415)


class ApiRoute(APIRoute):
    """`dependencies` must have `requires(…)`, `authenticated()` or `public()`."""

    def __init__(
        self,
        path: str,
        endpoint: Callable[..., Any],
        *,
        dependencies: Sequence[Depends] | None = None,
        responses: dict[int | str, dict[str, Any]] | None = None,
        openapi_extra: Mapping[str, Any] | None = None,
        methods: set[str] | list[str] | None = None,
        **about: Any,
    ) -> None:
        declared = self._declared = _declared_right(path, dependencies or ())
        self.right, self.is_public = declared.right, declared.is_public
        extra: dict[str, Any] = {"x-right": declared.name, **(openapi_extra or {})}
        extra.setdefault("security", [] if self.is_public else [{"token": []}, {"session": []}])
        if not self.is_public and "POST" in (methods or ()):
            extra.setdefault("parameters", [idempotency.PARAMETER])
            responses = {**problem_responses(409), **(responses or {})}
        self.takes_key = idempotency.PARAMETER in extra.get("parameters", ())
        statuses = [*CODES_OF_ALL, *(() if self.is_public else CODES_OF_PROTECTED)]
        if not {"GET"}.issuperset(methods or {"GET"}):
            statuses += [*CODES_WITH_BODY, *([403] if self.is_public else [])]
        super().__init__(
            path,
            endpoint,
            # The right is checked here, by `_admit` and `_answer`, which is cheaper than as a dependency.
            dependencies=[d for d in dependencies or () if d.dependency is not declared],
            responses={**problem_responses(*statuses), **(responses or {})},
            openapi_extra=extra,
            methods=methods,
            **about,
        )

    @cached_property
    def query_names(self) -> frozenset[str]:
        """The names of its query parameters."""
        return frozenset(query_names(self))

    @property
    def body_bytes_max(self) -> int:
        """Little for a public route that parses it. A webhook checks its bytes first, and parses then."""
        return PUBLIC_BODY_BYTES_MAX if self.is_public and self.body_field else BODY_BYTES_MAX

    def get_route_handler(self) -> Handler:
        answer = super().get_route_handler()

        async def handle(request: Request) -> Response:
            bounded = BoundedRequest(
                request.scope, request.receive, body_bytes_max=self.body_bytes_max
            )
            return await self._logged(bounded, answer)

        return handle

    async def _logged(self, request: BoundedRequest, answer: Handler) -> Response:
        """The answer to a request: that of `answer` if it is admitted, else the refusal."""
        response = await self._handle(request, answer)
        if is_enabled_for(logging.DEBUG):
            # The path of the route, not that of the request, which could forge a line of the log.
            log.debug(
                "web_request",
                method=request.method,
                route=self.path,
                status=response.status_code,
                actor=request.state.principal.actor if "principal" in request.state else None,
            )
        return response

    async def _handle(self, request: BoundedRequest, answer: Handler) -> Response:
        try:
            await self._admit(request)
            return await self._answer(request, answer)
        except RequestValidationError as problem:
            return self._refuse(request, invalid_request(problem, self))
        except TsuzukiError as problem:
            return self._refuse(request, problem)
        except HTTPException:
            raise
        except Exception:  # noqa: BLE001 - the outermost net: logged here, told without a traceback
            log.exception("web_request_failed", method=request.method, route=self.path)
            return self._refuse(request, unexpected())

    def _refuse(self, request: Request, error: TsuzukiError) -> Response:
        """The answer to a request that is refused."""
        return problem_response(error, request.app.state.application.mask)

    async def _admit(self, request: BoundedRequest) -> None:
        """Raises why the request is refused before its endpoint sees it."""
        if not self.is_public:
            state = request.app.state
            request.state.principal = await authenticate(
                request, state.authenticator, is_monitoring=self._declared.is_monitoring
            )
            if self.right is not None:
                require(request.state.principal, self.right)
        check_query(request, self.query_names)
        body = await request.body() if self.body_field else b""
        if body:
            check_content_type(request, body)
            await request.json()

    async def _answer(self, request: BoundedRequest, answer: Handler) -> Response:
        # A second look, for an `_admit` that would not check by itself.
        self._declared.check(request)
        key = request.headers.get(idempotency.HEADER) if self.takes_key else None
        with limited_reads(READ_SECONDS):
            if key is None:
                return await answer(request)
            return await idempotency.answer_once(request, key, answer)


def api_router(*tags: str, prefix: str = PREFIX) -> APIRouter:
    """A router whose routes have their whole path and their operation id: an application takes them as they are."""
    return APIRouter(
        prefix=prefix,
        route_class=ApiRoute,
        tags=[*tags],
        generate_unique_id_function=_operation_id,
    )


def _operation_id(route: APIRoute) -> str:
    return route.name


def _declared_right(path: str, dependencies: Sequence[Depends]) -> RequiredRight:
    declared = [d.dependency for d in dependencies if isinstance(d.dependency, RequiredRight)]
    if len(declared) != 1:
        raise RuntimeError(
            f"the route {path} must declare one right: requires(…), authenticated() or public()"
        )
    return declared[0]


def problem_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """What the OpenAPI document says about refusals."""
    return {
        status: {
            "model": Problem,
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
        for status in statuses
    }


def unexpected() -> RequestError:
    return RequestError(
        "this is a bug in Tsuzuki; the server's log has the details",
        status=500,
        hint="Report it with the lines of the log.",
        code="bug",
    )
