"""The outermost layer: checks Host and origin of every request, and gives every answer its security headers.

HEAD is GET without the body: the routes see GET, and the answer ends after its headers.
"""

from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tsuzuki.model.errors import TsuzukiError
from tsuzuki.web.problems import RequestError, problem_response
from tsuzuki.web.security.origins import check_host, check_origin

SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Of every answer that does not set its own."""

_AS_SENT = [
    (name.lower().encode("latin-1"), value.encode("latin-1"))
    for name, value in SECURITY_HEADERS.items()
]


def check_length(headers: Headers) -> None:
    """Refuse a request that says twice how long it is: a proxy before us may have read it otherwise."""
    if "transfer-encoding" in headers and "content-length" in headers:
        raise RequestError(
            "the request has both Content-Length and Transfer-Encoding",
            status=400,
            hint="Send one of them.",
            code="ambiguous_length",
            headers={"Connection": "close"},
        )


class RequestGuard:
    def __init__(
        self, app: ASGIApp, *, allowed_hosts: Collection[str], session_cookies: Collection[str]
    ) -> None:
        self._app = app
        self._allowed_hosts = frozenset(allowed_hosts)
        self._session_cookies = frozenset(session_cookies)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        is_head = scope["method"] == "HEAD"
        has_ended = False

        async def send_guarded(message: Message) -> None:
            nonlocal has_ended
            if message["type"] == "http.response.body" and is_head:
                if has_ended:
                    return
                has_ended, message = True, {"type": "http.response.body"}
            elif message["type"] == "http.response.start":
                own = [*message.get("headers", ())]
                names = {name for name, _ in own}
                added = [header for header in _AS_SENT if header[0] not in names]
                message = {**message, "headers": own + added}
            await send(message)

        headers = Headers(scope=scope)
        try:
            check_length(headers)
            check_host(headers, self._allowed_hosts)
            check_origin(
                scope["method"],
                headers,
                scope["scheme"],
                session_cookies=self._session_cookies,
            )
        except TsuzukiError as refusal:
            await problem_response(refusal)(scope, receive, send_guarded)
            return
        await self._app({**scope, "method": "GET"} if is_head else scope, receive, send_guarded)
