"""Answers the start of a run without FastAPI's general way from a request to an answer, which takes longer than
to store the run.

Right, key, body and every refusal are still those of the route. What the route reads in another way than we do here,
such as another type of content, is left to it.
"""

from fastapi import Response
from fastapi.exceptions import RequestValidationError
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from tsuzuki.web.api.jobs import JOB_NAME_LENGTH_MAX
from tsuzuki.web.api.runs import StartRun, start_run
from tsuzuki.web.route import ApiRoute
from tsuzuki.web.security.bodies import BoundedRequest

MEDIA_TYPE = "application/json"


class DirectStart:
    """Stands before the router. `route` is the one of `POST /jobs/{name}/runs`."""

    def __init__(self, app: ASGIApp, *, route: ApiRoute) -> None:
        self._app = app
        self._route = route
        asked, answered = route.body_field, route.response_field
        if asked is None or answered is None:
            raise TypeError(f"{route.path} must have a body and an answer")
        self._asked, self._answered = asked, answered

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self._is_direct(scope):
            await self._app(scope, receive, send)
            return
        response = await self._route.answer(BoundedRequest(scope, receive), self._start)
        await response(scope, receive, send)

    def _is_direct(self, scope: Scope) -> bool:
        """Whether we answer it. Then its path is read."""
        if scope["type"] != "http" or scope["method"] != "POST":
            return False
        found = self._route.path_regex.match(scope["path"])
        if found is None or len(found["name"]) > JOB_NAME_LENGTH_MAX:
            return False
        media_types = [value for name, value in scope["headers"] if name == b"content-type"]
        if any(_media_type(value) != MEDIA_TYPE for value in media_types):
            return False
        scope["path_params"] = found.groupdict()
        return True

    async def _start(self, request: Request) -> Response:
        body = await request.json() if await request.body() else None
        asked = StartRun() if body is None else self._validated(body)
        name, prefer = request.path_params["name"], request.headers.get("prefer")
        headers = Response()
        del headers.headers["content-length"]  # its own, of an empty body
        run = await start_run(request, headers, name, asked, prefer)
        content = self._answered.serialize_json(run)
        return Response(content, self._route.status_code or 200, headers.headers, MEDIA_TYPE)

    def _validated(self, body: object) -> StartRun:
        asked, problems = self._asked.validate(body, loc=("body",))
        if problems:
            raise RequestValidationError(problems)
        return asked or StartRun()


def _media_type(header: bytes) -> str:
    return header.decode("latin-1").partition(";")[0].strip().lower()
