"""The OpenAPI document of the application. The page /docs shows it to people."""

from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse

from tsuzuki.web.encoded_content import EncodedContent
from tsuzuki.web.links import add_links
from tsuzuki.web.route import ApiRouter
from tsuzuki.web.security.rights import PUBLIC
from tsuzuki.web.security.session_cookie import NAME, SECURE_PREFIX

router = ApiRouter("documents", prefix="")

DESCRIPTION = (
    "The HTTP API of Tsuzuki, below `/api/v1`.\n\n- **Errors** are problem documents "
    "(RFC 9457) with a stable `code`, a message and a hint.\n- **Lists** return a "
    "`next_cursor`; `limit`, `cursor` and `count` work the same everywhere. A cursor "
    "is valid only\n  for its list and filters.\n- **`Idempotency-Key`** on a POST: "
    "repeating the key with the same body returns the first response for 24 hours;\n  "
    "with another body, the response is 422, and while the first request is in "
    "progress, 409.\n- **`ETag`** of a job is its version; a change requires it in "
    "`If-Match` (428 if missing, 412 if the job has changed).\n- **`Prefer: wait=30`** "
    "when starting a run waits for its end.\n- Secrets are masked as `***` in all "
    "responses.\n"
)


def openapi_of(app: FastAPI) -> dict[str, Any]:
    """The document of an application; built once."""
    if app.openapi_schema is None:
        app.openapi_schema = _build(app)
    return app.openapi_schema


def _build(app: FastAPI) -> dict[str, Any]:
    document = get_openapi(
        title=app.title,
        version=app.version,
        openapi_version="3.1.0",
        description=app.description,
        routes=app.routes,
    )
    components = document.setdefault("components", {})
    components["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer", "description": "A token: `tsz_…`."},
        "session": {
            "type": "apiKey",
            "in": "cookie",
            "name": f"{SECURE_PREFIX}{NAME}ID",
            "description": (
                "Session cookie. ID identifies the installation; without TLS, on loopback, the "
                "name has no prefix."
            ),
        },
    }
    for schema in ("HTTPValidationError", "ValidationError"):
        components.get("schemas", {}).pop(schema, None)
    add_links(document)
    return document


@router.get("/openapi.json", right=PUBLIC, response_class=JSONResponse)
async def openapi_document(request: Request) -> Response:
    """This document."""
    state = request.app.state
    if not hasattr(state, "openapi_content"):
        state.openapi_content = EncodedContent(bytes(JSONResponse(openapi_of(request.app)).body))
    content: EncodedContent = state.openapi_content
    return content.answer(request, media_type="application/json", cache_control="no-cache")
