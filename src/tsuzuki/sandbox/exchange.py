"""What goes to and fro between a client and a stand-in: a request, its answer, and the table of routes.

An application is any function from `StandInRequest` to `Response`; `Router` makes one of a plain table.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from email.message import Message
from typing import Any
from urllib.parse import unquote


@dataclass(frozen=True, kw_only=True)
class StandInRequest:
    """One request as it came. `path` is still percent-encoded; `params` and `query` are decoded."""

    method: str
    path: str
    query_text: str = ""
    query: Mapping[str, str]
    """The last value of each name; a stand-in that takes lists reads `query_text` itself."""

    headers: Message
    """Looked up without regard to case."""

    body: bytes = b""
    client: str = ""
    """Host and port it came from: what comes over one connection has one port."""

    base_url: str = ""
    """Where this server is reached, for answers that hold links."""

    params: Mapping[str, str] = field(default_factory=dict)
    """What the placeholders of the route matched."""

    @property
    def target(self) -> str:
        """The path with its query, as it stood in the request line."""
        return f"{self.path}?{self.query_text}" if self.query_text else self.path

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True, kw_only=True)
class Stream:
    """A body that is made while it is sent, and may be larger than any memory."""

    chunks: Callable[[], Iterable[bytes]]
    """Called once per response. It is not read further when the client is gone."""

    length: int | None = None
    """Announced as Content-Length; without it the body is sent in chunks (Transfer-Encoding)."""

    pause_seconds: float = 0.0
    """Waited after each chunk."""

    def byte_by_byte(self, pause_seconds: float) -> "Stream":
        def single_bytes() -> Iterator[bytes]:
            for chunk in self.chunks():
                for position in range(len(chunk)):
                    yield chunk[position : position + 1]

        return replace(self, chunks=single_bytes, pause_seconds=pause_seconds)


@dataclass(frozen=True, kw_only=True)
class Response:
    """One answer, whole, or with a `stream` as its body. The server adds the length and the date."""

    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    """Empty: the header is left out."""

    headers: Mapping[str, str] = field(default_factory=dict)
    stream: Stream | None = None
    """Sent instead of `body`."""

    held_seconds: float = 0.0
    """The answer is complete, and its client waits this long for it."""

    lost: bool = False
    """The connection is reset instead: what the request asked for happened or not, and no client can tell."""


Application = Callable[[StandInRequest], Response]
"""One that has `control_routes` adds them to those under `/_sandbox`."""


def json_response(
    value: Any, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    body = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return Response(status=status, body=body.encode(), headers=headers or {})


@dataclass(frozen=True)
class Route:
    """`Route("GET", "/volumes/{id}", volume)`: a placeholder stands for one segment, so a slash in
    a name must come percent-encoded, as the real services demand."""

    method: str
    path: str
    application: Application

    def pattern(self) -> re.Pattern[str]:
        parts = re.split(r"\{(\w+)\}", self.path)
        literals, names = parts[::2], parts[1::2]
        text = re.escape(literals[0])
        for name, literal in zip(names, literals[1:], strict=True):
            text += f"(?P<{name}>[^/]+)" + re.escape(literal)
        return re.compile(text)


class Router:
    """An application that asks the first route matching method and path."""

    def __init__(self, routes: Iterable[Route], *, otherwise: Application) -> None:
        self._routes = [(route.pattern(), route) for route in routes]
        self._otherwise = otherwise

    def __call__(self, request: StandInRequest) -> Response:
        for pattern, route in self._routes:
            if route.method != request.method:
                continue
            if match := pattern.fullmatch(request.path):
                params = {name: unquote(text) for name, text in match.groupdict().items()}
                return route.application(replace(request, params=params))
        return self._otherwise(request)
