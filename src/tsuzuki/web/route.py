"""A route of the API: authenticates, checks the right, reads the body, and answers every error as a problem.

In that order, so that a request that may not come in learns nothing about what it would find. A route without a
declared right cannot be made.
"""

import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from tsuzuki.model.access import AnyRight
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
Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])

PREFIX = "/api/v1"
CODES_OF_ALL = (400, 421, 422, 500, 503)
CODES_OF_PROTECTED = (401, 403)
CODES_WITH_BODY = (408, 413, 415)


class ApiRoute(APIRoute):
    """A route that needs a `right`, and refuses requests with the statuses in `refuses` beside those of all routes."""

    def __init__(
        self,
        path: str,
        endpoint: Callable[..., Any],
        *,
        right: AnyRight | RequiredRight,
        method: str = "GET",
        refuses: Sequence[int] = (),
        responses: Mapping[int | str, dict[str, Any]] | None = None,
        openapi_extra: Mapping[str, Any] | None = None,
        **about: Any,
    ) -> None:
        declared = right if isinstance(right, RequiredRight) else RequiredRight(right)
        self._declared, self.right, self.is_public = declared, declared.right, declared.is_public
        extra: dict[str, Any] = {"x-right": declared.name, **(openapi_extra or {})}
        extra.setdefault("security", [] if self.is_public else [{"token": []}, {"session": []}])
        statuses = [*CODES_OF_ALL, *(() if self.is_public else CODES_OF_PROTECTED)]
        if method != "GET":
            statuses += [*CODES_WITH_BODY, *([403] if self.is_public else [])]
        if method == "POST" and not self.is_public:
            extra.setdefault("parameters", [idempotency.PARAMETER])
            statuses.append(409)
        self.takes_key = idempotency.PARAMETER in extra.get("parameters", ())
        super().__init__(
            path,
            endpoint,
            responses=_problems(*statuses, *refuses) | dict(responses or {}),
            openapi_extra=extra,
            methods=[method],
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


class ApiRouter:
    """The routes of one part of the API, each declared with `right=` and what else an `ApiRoute` takes. They have their
    whole path and their operation id: an application takes them as they are."""

    def __init__(self, *tags: str, prefix: str = PREFIX) -> None:
        self.routes: list[ApiRoute] = []
        self._tags = tags
        self._prefix = prefix

    def get(self, path: str, **about: Any) -> Callable[[Endpoint], Endpoint]:
        return self._route("GET", path, about)

    def post(self, path: str, **about: Any) -> Callable[[Endpoint], Endpoint]:
        return self._route("POST", path, about)

    def put(self, path: str, **about: Any) -> Callable[[Endpoint], Endpoint]:
        return self._route("PUT", path, about)

    def patch(self, path: str, **about: Any) -> Callable[[Endpoint], Endpoint]:
        return self._route("PATCH", path, about)

    def delete(self, path: str, **about: Any) -> Callable[[Endpoint], Endpoint]:
        return self._route("DELETE", path, about)

    def _route(
        self, method: str, path: str, about: Mapping[str, Any]
    ) -> Callable[[Endpoint], Endpoint]:
        def register(endpoint: Endpoint) -> Endpoint:
            about_all = {"tags": [*self._tags], "operation_id": endpoint.__name__, **about}
            self.routes.append(ApiRoute(self._prefix + path, endpoint, method=method, **about_all))
            return endpoint

        return register


def _problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
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
        "internal error; details are in the server's log",
        status=500,
        hint="Please report it with the lines from the log.",
        code="bug",
    )
