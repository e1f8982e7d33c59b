"""Errors as problem documents (RFC 9457): the one map from an error to an HTTP status.

A problem has the stable code of the error, what happened, what to do next, and where. It never has a traceback,
and secrets are masked in it.
"""

import json
import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from tsuzuki.model.errors import (
    ConfigurationError,
    Conflict,
    IncompleteRun,
    Interrupted,
    NotAuthenticated,
    NotFound,
    NotPermitted,
    TsuzukiError,
    Unreachable,
    UsageError,
    VersionMismatch,
    WaitTimedOut,
    WorkFailed,
)
from tsuzuki.model.secrets import SecretMask

MEDIA_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:tsuzuki:problem:"
BEARER_CHALLENGE = 'Bearer realm="tsuzuki"'
_URLS_ONLY = SecretMask()

STATUSES: dict[type[TsuzukiError], int] = {
    TsuzukiError: 500,
    UsageError: 422,
    ConfigurationError: 503,
    NotFound: 404,
    Unreachable: 503,
    Conflict: 409,
    VersionMismatch: 412,
    NotPermitted: 403,
    NotAuthenticated: 401,
    WaitTimedOut: 504,
    WorkFailed: 409,
    IncompleteRun: 409,
    Interrupted: 503,
}
"""A class that is not listed has the status of the nearest of its parents that is. `ConfigurationError` is one of
the server's own file; what is wrong with a definition that was sent is raised as `InvalidRequest`."""


class RequestError(UsageError):
    """A request that HTTP itself refuses: its status, and the headers that go with it."""

    code = "bad_request"

    def __init__(
        self,
        message: str,
        *,
        status: int,
        headers: Mapping[str, str] | None = None,
        **about: Any,
    ) -> None:
        super().__init__(message, **about)
        self.status = status
        self.headers = dict(headers or {})


class InvalidRequest(UsageError):
    """What is wrong with parts of a request, each with its place in it."""

    code = "invalid_request"

    def __init__(
        self, problems: "list[PartProblem]", *, total: int | None = None, **about: Any
    ) -> None:
        """`total`: how many parts are wrong, if not all of them are told."""
        first, others = problems[0], (total or len(problems)) - 1
        more = f" (and {others} more)" if others else ""
        about.setdefault("hint", first.hint)
        about.setdefault("code", first.code)
        super().__init__(f"{first.message}{more}", **about)
        self.parts = problems


class Where(BaseModel):
    """The position of what is wrong: in a file of the server."""

    model_config = ConfigDict(extra="forbid")

    file: str
    line: int | None = None
    column: int | None = None


class PartProblem(BaseModel):
    """What is wrong with one part of a request."""

    model_config = ConfigDict(extra="forbid")

    where: str = Field(
        description="Affected part of the request, such as `body.name` or `query.limit`."
    )
    message: str
    code: str = "invalid_value"
    hint: str | None = None


class ConflictingValue(BaseModel):
    """A key that has another value than the one that was sent."""

    model_config = ConfigDict(extra="forbid")

    key: str
    current: Any
    sent: Any


class Problem(BaseModel):
    """Why a request was refused (RFC 9457). `code` is stable; `title` and `detail` are for people."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "type": "urn:tsuzuki:problem:job_unknown",
                    "title": "Not Found",
                    "status": 404,
                    "code": "job_unknown",
                    "detail": "there is no job 'helo'",
                    "hint": 'Did you mean "hello"? See: tsuzuki job ls',
                }
            ]
        },
    )

    type: str
    title: str
    status: int
    code: str
    detail: str
    hint: str | None = None
    where: Where | None = None
    retry_after_seconds: float | None = None
    problems: list[PartProblem] | None = None
    differences: list[ConflictingValue] | None = None


def status_of(error: TsuzukiError) -> int:
    if isinstance(error, RequestError):
        return error.status
    if isinstance(error, NotAuthenticated) and error.retry_after_seconds is not None:
        return 429  # too many attempts to prove it
    return next(STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES)


def problem_of(error: TsuzukiError, mask: SecretMask) -> Problem:
    status = status_of(error)
    place = error.place
    return Problem(
        type=TYPE_PREFIX + error.specific_code,
        title=HTTPStatus(status).phrase,
        status=status,
        code=error.specific_code,
        detail=mask.text(error.message),
        hint=mask.value(error.hint),
        where=Where(file=place.file, line=place.line, column=place.column) if place else None,
        retry_after_seconds=error.retry_after_seconds,
        problems=_parts(error, mask),
        differences=[
            ConflictingValue(
                key=key,
                current=mask.value({key: current})[key],
                sent=mask.value({key: sent})[key],
            )
            for key, current, sent in error.differences
        ]
        if isinstance(error, VersionMismatch)
        else None,
    )


def _parts(error: TsuzukiError, mask: SecretMask) -> list[PartProblem] | None:
    if isinstance(error, InvalidRequest):
        return [PartProblem(**mask.value(part.model_dump())) for part in error.parts]
    gathered: tuple[TsuzukiError, ...] = getattr(error, "problems", ())
    return [
        PartProblem(
            where=str(problem.place or ""),
            message=mask.text(problem.message),
            code=problem.specific_code,
            hint=mask.value(problem.hint),
        )
        for problem in gathered
    ] or None


def problem_response(error: TsuzukiError, mask: SecretMask = _URLS_ONLY) -> Response:
    """`mask` knows the secrets of the configuration; those of URLs are masked in any case."""
    problem = problem_of(error, mask)
    headers = dict(error.headers) if isinstance(error, RequestError) else {}
    if problem.status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = BEARER_CHALLENGE
    if error.retry_after_seconds is not None:
        headers["Retry-After"] = str(math.ceil(error.retry_after_seconds))
    elif problem.status == HTTPStatus.SERVICE_UNAVAILABLE and not error.permanent:
        headers["Retry-After"] = "2"
    told = problem.model_dump(exclude_none=True)
    if problem.differences is not None:  # whose null is a value
        told["differences"] = [one.model_dump() for one in problem.differences]
    body = json.dumps(told, ensure_ascii=False)
    # A lone surrogate that was sent to us is told as the escape that it was.
    content = body.encode("utf-8", "backslashreplace")
    return Response(content, problem.status, headers, MEDIA_TYPE)
