"""`Idempotency-Key`: the same request is carried out once, however often it is sent, and by any process.

Only what was done is remembered. A refusal frees the key. After an error whose outcome is unknown the request may be
made again under the same request id, by which what was stored then is found.
"""

import hashlib
import re
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.concurrency import run_in_threadpool

from tsuzuki.model.errors import TsuzukiError
from tsuzuki.services.api_requests import ApiRequests, StoredAnswer
from tsuzuki.web.problems import InvalidRequest, PartProblem, status_of

HEADER = "Idempotency-Key"
KEY = re.compile(r"[\x21-\x7e]{1,255}")
KEPT_HEADERS = ("content-type", "location", "etag", "preference-applied")
PARAMETER: dict[str, Any] = {
    "name": HEADER,
    "in": "header",
    "required": False,
    "description": (
        "Makes the request safe to repeat: for 24 hours, the same key returns the first response."
    ),
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": r"^[\x21-\x7e]+$"},
}
NOT_KEPT: dict[str, Any] = {"parameters": []}
"""`openapi_extra` of a POST that takes no key: its request or its answer has a secret, which is not to be stored."""


async def answer_once(
    request: Request, key: str, answer: Callable[[Request], Coroutine[Any, Any, Response]]
) -> Response:
    """The answer of the first request with this key."""
    if not KEY.fullmatch(key):
        message = f"{HEADER} must have 1 to 255 visible ASCII characters"
        raise InvalidRequest([PartProblem(where=f"header.{HEADER}", message=message)])
    requests: ApiRequests = request.app.state.application.api_requests
    claim = await run_in_threadpool(
        requests.claim,
        actor=request.state.principal.identity,
        key=key,
        fingerprint=_fingerprint(request, await request.body()),
    )
    if isinstance(claim, StoredAnswer):
        return Response(claim.body, claim.status, {**claim.headers, "Idempotency-Replayed": "true"})
    request.state.request_id = claim.request_id
    try:
        response = await answer(request)
    except (RequestValidationError, TsuzukiError) as problem:
        is_refusal = isinstance(problem, RequestValidationError) or status_of(problem) < 500
        await run_in_threadpool(requests.release if is_refusal else requests.lapse, claim)
        raise
    headers = {name: response.headers[name] for name in KEPT_HEADERS if name in response.headers}
    body = bytes(response.body).decode("utf-8")
    stored = StoredAnswer(status=response.status_code, headers=headers, body=body)
    await run_in_threadpool(requests.answer, claim, stored)
    return response


def _fingerprint(request: Request, body: bytes) -> str:
    """Of what was asked for: method, address, preference and body."""
    prefer = request.headers.get("prefer", "")
    asked = f"{request.method}\n{request.url.path}\n{request.url.query}\n{prefer}\n".encode()
    return hashlib.sha256(asked + body).hexdigest()
