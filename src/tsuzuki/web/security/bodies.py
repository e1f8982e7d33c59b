"""Reads the JSON body of a request: bounded in size, time and depth, and refused where readers could disagree.

Two programs may understand a doubled key, a lone half of a surrogate pair or a number beyond 64 bits in two ways. So
none of them is taken.
"""

import asyncio
import json
import math
from typing import Any, NoReturn

from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope

from tsuzuki.model.errors import UsageError
from tsuzuki.model.jsontext import DEPTH_MAX, is_too_deep
from tsuzuki.web.problems import RequestError

BODY_BYTES_MAX = 1_048_576
PUBLIC_BODY_BYTES_MAX = 16_384
"""Of JSON or a form that is sent without credentials: a name and a password."""
LOOP_BYTES_MAX = 32_768
"""A larger body is read in a thread: the event loop has others to answer meanwhile."""
BODY_SECONDS_MAX = 30.0
INTEGER_MAX = 2**63 - 1


class BoundedRequest(Request):
    """A request whose body is read up to a limit, and parsed strictly."""

    def __init__(
        self, scope: Scope, receive: Receive, *, body_bytes_max: int = BODY_BYTES_MAX
    ) -> None:
        super().__init__(scope, receive)
        self._body_bytes_max = body_bytes_max

    async def body(self) -> bytes:
        if not hasattr(self, "_body"):
            self._body = await _read(self, self._body_bytes_max)
        return self._body

    async def json(self) -> Any:
        if not hasattr(self, "_json"):
            body = await self.body()
            if len(body) > LOOP_BYTES_MAX:
                self._json = await run_in_threadpool(parse_json, body)
            else:
                self._json = parse_json(body)
        return self._json


async def _read(request: Request, bytes_max: int) -> bytes:
    declared = request.headers.get("content-length", "0")
    if declared.isdigit() and int(declared) > bytes_max:
        _too_large(bytes_max)
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(BODY_SECONDS_MAX):
            async for chunk in request.stream():
                size += len(chunk)
                if size > bytes_max:
                    _too_large(bytes_max)
                chunks.append(chunk)
    except ClientDisconnect:  # no client is left to read why
        raise RequestError(
            "the connection was closed before the body was complete",
            status=400,
            code="body_incomplete",
        ) from None
    except TimeoutError:
        raise RequestError(
            f"the body was not received within {BODY_SECONDS_MAX:g} s", status=408, code="body_slow"
        ) from None
    return b"".join(chunks)


def _too_large(bytes_max: int) -> NoReturn:
    raise RequestError(
        f"the body is larger than {bytes_max} bytes",
        status=413,
        hint="Send less data per request.",
        code="body_too_large",
    )


def check_content_type(request: Request, body: bytes) -> None:
    """A body must say that it is JSON: a form of another site cannot."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if body and media_type != "application/json" and not media_type.endswith("+json"):
        raise RequestError(
            f"the body has {media_type or 'no content type'}, not JSON",
            status=415,
            hint="Send JSON with: Content-Type: application/json",
            code="not_json_type",
        )


def parse_json(body: bytes) -> Any:
    """The value of a body. Raises `RequestError` (400) for what is not JSON, and `UsageError` for JSON that is
    refused."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as problem:
        raise RequestError(
            f"the body is not valid UTF-8 at byte {problem.start}",
            status=400,
            code="not_utf8",
        ) from None
    _check_depth(body)
    try:
        value = json.loads(
            text,
            object_pairs_hook=_unique,
            parse_int=_bounded_integer,
            parse_float=_finite,
            parse_constant=_not_a_number,
        )
    except json.JSONDecodeError as problem:
        raise RequestError(
            f"the body is not valid JSON: {problem.msg} (line {problem.lineno}, column "
            f"{problem.colno})",
            status=400,
            code="not_json",
        ) from None
    _check_surrogates(text, value)
    return value


def _check_depth(body: bytes) -> None:
    if is_too_deep(body):
        raise UsageError(
            f"the body is nested more than {DEPTH_MAX} levels deep", code="body_too_deep"
        )


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise UsageError(f"duplicate key {name!r} in an object", code="duplicate_key")
            seen.add(name)
    return found


def _check_surrogates(text: str, value: Any) -> None:
    """An escape can name half of a surrogate pair, which is no character."""
    if "\\u" not in text:
        return
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise UsageError(
            "a text in the body contains an unpaired surrogate", code="not_text"
        ) from None


def _bounded_integer(digits: str) -> int:
    # Python refuses to read thousands of digits; so long ones are not read at all.
    if len(digits) > 20 or not -INTEGER_MAX - 1 <= int(digits) <= INTEGER_MAX:
        raise UsageError(
            f"the number {digits[:24]}{'…' if len(digits) > 24 else ''} does not fit into 64 bits",
            hint="Send it as text.",
            code="number_too_large",
        )
    return int(digits)


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise UsageError(
            f"the number {digits[:24]} is too large",
            hint="Send it as text.",
            code="number_too_large",
        )
    return number


def _not_a_number(word: str) -> NoReturn:
    raise RequestError(
        f"the body is not valid JSON: {word} is not a JSON number", status=400, code="not_json"
    )
