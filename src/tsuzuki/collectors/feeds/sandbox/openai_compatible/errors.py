"""The error bodies of the OpenAI API."""

from collections.abc import Mapping

from tsuzuki.sandbox.exchange import Response, json_response

from .cases import CompletionCase

RETRY_SECONDS = 20.0
BAD_GATEWAY_PAGE = (
    b"<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n"
    b"<center><h1>502 Bad Gateway</h1></center>\r\n</body>\r\n</html>\r\n"
)


def error(
    status: int,
    message: str,
    kind: str,
    code: str | None = None,
    *,
    headers: Mapping[str, str] | None = None,
) -> Response:
    body = {"message": message, "type": kind, "param": None, "code": code}
    return json_response({"error": body}, status=status, headers=headers)


def invalid_request(message: str) -> Response:
    return error(400, message, "invalid_request_error")


def missing_key() -> Response:
    message = (
        "You didn't provide an API key. You need to provide your API key in an Authorization "
        "header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY)."
    )
    return error(401, message, "invalid_request_error")


def wrong_key() -> Response:
    message = "Incorrect API key provided: ***."
    return error(401, message, "invalid_request_error", "invalid_api_key")


def unknown_model(model: str) -> Response:
    message = f"The model `{model}` does not exist or you do not have access to it."
    return error(404, message, "invalid_request_error", "model_not_found")


def rate_limit(model: str, seconds: float) -> Response:
    message = (
        f"Rate limit reached for {model} on requests per min (RPM): Limit 3, Used 3, Requested 1. "
        f"Please try again in {seconds:g}s."
    )
    headers = {
        "Retry-After": str(int(seconds)),
        "x-ratelimit-limit-requests": "3",
        "x-ratelimit-remaining-requests": "0",
        "x-ratelimit-reset-requests": f"{seconds:g}s",
    }
    return error(429, message, "requests", "rate_limit_exceeded", headers=headers)


def of_case(case: CompletionCase, model: str, seconds: float | None) -> Response | None:
    """The error of a case that is one."""
    if case is CompletionCase.RATE_LIMIT:
        return rate_limit(model, RETRY_SECONDS if seconds is None else seconds)
    return FIXED.get(case)


FIXED = {
    CompletionCase.INSUFFICIENT_QUOTA: error(
        429,
        "You exceeded your current quota, please check your plan and billing details.",
        "insufficient_quota",
        "insufficient_quota",
    ),
    CompletionCase.BAD_REQUEST: invalid_request(
        "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model."
    ),
    CompletionCase.SERVER_ERROR: error(
        500, "The server had an error while processing your request.", "server_error"
    ),
    CompletionCase.OVERLOADED: error(
        503, "The engine is currently overloaded, please try again later.", "server_error"
    ),
    CompletionCase.BAD_GATEWAY: Response(
        status=502, body=BAD_GATEWAY_PAGE, content_type="text/html"
    ),
    CompletionCase.REQUEST_LOST: Response(lost=True),
}
