"""Faults over HTTP, for a person who rehearses with curl.

    GET    /_sandbox           the faults that wait, and how many requests came
    GET    /_sandbox/requests  the requests themselves, without what they carried as secrets
    POST   /_sandbox/faults    add one: {"kind": "answer", "path": "*/pages", "status": 503}
    DELETE /_sandbox/faults    clear them all
    POST   /_sandbox/release   let go what hangs

The fields of a fault are those of `faults.Fault`. A stand-in adds routes of its own under the same prefix.
A page of another origin is refused: a browser would let it send requests here.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .exchange import Application, Response, Route, Router, StandInRequest, json_response
from .faults import Faults, StandInFault, StandInFaultKind

PREFIX = "/_sandbox"
SECRET_PARAMETER = re.compile(
    r"(?<=[?&])([\w.-]*(?:key|token|secret|password)=)[^&]+", re.IGNORECASE
)
SECRET_HEADERS = {"authorization", "private-token", "job-token", "cookie", "x-goog-api-key"}


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A request that came, and how it was answered; None if it never was."""

    request: StandInRequest
    status: int | None

    def as_dict(self) -> dict[str, Any]:
        headers = {
            name: "***" if name.lower() in SECRET_HEADERS else value
            for name, value in self.request.headers.items()
        }
        return {
            "method": self.request.method,
            "target": SECRET_PARAMETER.sub(r"\g<1>***", self.request.target),
            "headers": headers,
            "status": self.status,
        }


def control(
    faults: Faults, log: Callable[[], Sequence[Seen]], more: Iterable[Route] = ()
) -> Application:
    """The application behind `/_sandbox`; `more` are the routes of one stand-in."""

    def overview(_request: StandInRequest) -> Response:
        waiting = [asdict(fault) for fault in faults.waiting]
        return json_response({"faults": waiting, "held": faults.held, "requests": len(log())})

    def requests(_request: StandInRequest) -> Response:
        return json_response([seen.as_dict() for seen in log()])

    def add(request: StandInRequest) -> Response:
        try:
            fault = _fault(request.json())
        except (ValueError, TypeError) as problem:
            return json_response({"message": f"not a fault: {problem}"}, status=400)
        faults.add(fault)
        return json_response(asdict(fault), status=201)

    def clear(_request: StandInRequest) -> Response:
        faults.clear()
        return Response(status=204)

    def release(_request: StandInRequest) -> Response:
        faults.release()
        return Response(status=204)

    routes = [
        Route("GET", PREFIX, overview),
        Route("GET", f"{PREFIX}/requests", requests),
        Route("POST", f"{PREFIX}/faults", add),
        Route("DELETE", f"{PREFIX}/faults", clear),
        Route("POST", f"{PREFIX}/release", release),
        *more,
    ]
    router = Router(routes, otherwise=_unknown)

    def refusing_other_origins(request: StandInRequest) -> Response:
        if _is_from_another_origin(request):
            return json_response({"message": "refused: a request of another origin"}, status=403)
        return router(request)

    return refusing_other_origins


def _is_from_another_origin(request: StandInRequest) -> bool:
    origin = request.headers.get("Origin")
    if origin is not None and origin != request.base_url:
        return True
    return request.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin")


def _fault(fields: Any) -> StandInFault:
    if not isinstance(fields, dict):
        raise TypeError("an object is expected")
    body = fields.get("body", "")
    text = body if isinstance(body, str) else json.dumps(body)
    kind = StandInFaultKind(fields.get("kind", StandInFaultKind.ANSWER))
    return StandInFault(**{**fields, "kind": kind, "body": text})


def _unknown(request: StandInRequest) -> Response:
    return json_response({"message": f"nothing at {request.method} {request.path}"}, status=404)
