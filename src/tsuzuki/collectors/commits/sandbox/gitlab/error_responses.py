"""The error responses of GitLab, as an exception that ends a request."""

from collections.abc import Mapping
from typing import Any

from tsuzuki.sandbox.exchange import Response, json_response


class ErrorResponse(Exception):
    """A status and the body GitLab sends with it."""

    def __init__(self, status: int, body: Any, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status)
        self.status = status
        self.body = body
        self.headers = headers or {}

    def response(self) -> Response:
        return json_response(self.body, status=self.status, headers=self.headers)


def unauthorized() -> ErrorResponse:
    return ErrorResponse(401, {"message": "401 Unauthorized"})


def not_found(what: str | None = None) -> ErrorResponse:
    return ErrorResponse(404, {"message": f"404 {what} Not Found" if what else "404 Not Found"})
