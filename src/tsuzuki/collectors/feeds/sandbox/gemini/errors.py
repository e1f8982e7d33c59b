"""The error bodies of the Gemini API."""

from collections.abc import Sequence
from typing import Any

from tsuzuki.sandbox.exchange import Response, json_response

from .cases import GeminiCase

SERVICE = "generativelanguage.googleapis.com"
TYPE = "type.googleapis.com/google.rpc."
RETRY_SECONDS = 36.4
BAD_GATEWAY_PAGE = (
    b"<!DOCTYPE html><html lang=en><title>Error 502 (Server Error)!!1</title>"
    b"<p>The server encountered a temporary error and could not complete your request.</html>"
)
LIMITS = {"Minute": 15, "Day": 20}


def error(code: int, status: str, message: str, details: Sequence[dict[str, Any]] = ()) -> Response:
    body: dict[str, Any] = {"code": code, "message": message, "status": status}
    if details:
        body["details"] = list(details)
    return json_response({"error": body}, status=code)


def invalid_argument(
    message: str = "Request contains an invalid argument.", details: Sequence[dict[str, Any]] = ()
) -> Response:
    return error(400, "INVALID_ARGUMENT", message, details)


def missing_key() -> Response:
    return error(
        403,
        "PERMISSION_DENIED",
        "Method doesn't allow unregistered callers (callers without established identity). "
        "Please use API Key or other form of API consumer identity to call this API.",
    )


def wrong_key() -> Response:
    message = "API key not valid. Please pass a valid API key."
    info = _error_info("API_KEY_INVALID")
    localized = {"@type": f"{TYPE}LocalizedMessage", "locale": "en-US", "message": message}
    return invalid_argument(message, [info, localized])


def unknown_model(version: str, model: str) -> Response:
    message = (
        f"models/{model} is not found for API version {version}, or is not supported for "
        "generateContent. Call ListModels to see the list of available models and their "
        "supported methods."
    )
    return error(404, "NOT_FOUND", message)


def quota(model: str, spans: Sequence[str], *, limit: int | None, seconds: float) -> Response:
    """The 429 for these spans; `limit` over their own limits."""
    metric = f"{SERVICE}/generate_content_free_tier_requests"
    limits = {span: LIMITS[span] if limit is None else limit for span in spans}
    exceeded = "".join(
        f"\n* Quota exceeded for metric: {metric}, limit: {limits[span]}, model: {model}"
        for span in spans
    )
    violations = [
        {
            "quotaMetric": metric,
            "quotaId": f"GenerateRequestsPer{span}PerProjectPerModel-FreeTier",
            "quotaDimensions": {"location": "global", "model": model},
            **({"quotaValue": str(limits[span])} if limits[span] else {}),
        }
        for span in spans
    ]
    link = {"description": "Learn more about Gemini API quotas", "url": _RATE_LIMITS_PAGE}
    details: list[dict[str, Any]] = [
        {"@type": f"{TYPE}Help", "links": [link]},
        {"@type": f"{TYPE}QuotaFailure", "violations": violations},
        {"@type": f"{TYPE}RetryInfo", "retryDelay": f"{int(seconds)}s"},
    ]
    message = f"{_QUOTA_SENTENCES}{exceeded}\nPlease retry in {seconds:g}s."
    return error(429, "RESOURCE_EXHAUSTED", message, details)


def of_case(case: GeminiCase, model: str, seconds: float | None) -> Response | None:
    """The error of a case that is one."""
    spans = QUOTA_SPANS.get(case)
    if spans is not None:
        limit = 0 if case is GeminiCase.NOT_IN_PLAN else None
        return quota(model, spans, limit=limit, seconds=_delay(seconds))
    if case is GeminiCase.QUOTA_IN_TEXT:
        message = f"{_QUOTA_SENTENCES} Please retry in {_delay(seconds):g}s."
        return error(429, "RESOURCE_EXHAUSTED", message)
    return FIXED.get(case)


def _delay(seconds: float | None) -> float:
    return RETRY_SECONDS if seconds is None else seconds


def _error_info(reason: str) -> dict[str, Any]:
    return {
        "@type": f"{TYPE}ErrorInfo",
        "reason": reason,
        "domain": "googleapis.com",
        "metadata": {"service": SERVICE},
    }


_RATE_LIMITS_PAGE = "https://ai.google.dev/gemini-api/docs/rate-limits"
_QUOTA_SENTENCES = (
    "You exceeded your current quota, please check your plan and billing details. For more "
    f"information on this error, head to: {_RATE_LIMITS_PAGE}."
)

QUOTA_SPANS = {
    GeminiCase.MINUTE_QUOTA: ["Minute"],
    GeminiCase.DAILY_QUOTA: ["Day"],
    GeminiCase.BOTH_QUOTAS: ["Minute", "Day"],
    GeminiCase.NOT_IN_PLAN: ["Day", "Minute"],
}
FIXED = {
    GeminiCase.QUOTA_WITHOUT_DETAILS: error(
        429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."
    ),
    GeminiCase.INVALID_ARGUMENT: invalid_argument(),
    GeminiCase.KEY_SUSPENDED: error(
        403,
        "PERMISSION_DENIED",
        "Permission denied: Consumer 'api_key:***' has been suspended.",
        [_error_info("CONSUMER_SUSPENDED")],
    ),
    GeminiCase.SERVER_ERROR: error(
        500, "INTERNAL", "An internal error has occurred. Please retry."
    ),
    GeminiCase.OVERLOADED: error(
        503, "UNAVAILABLE", "The model is overloaded. Please try again later."
    ),
    GeminiCase.BAD_GATEWAY: Response(status=502, body=BAD_GATEWAY_PAGE, content_type="text/html"),
    GeminiCase.REQUEST_LOST: Response(lost=True),
}
