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

DESCRIPTION = """\
Everything that Tsuzuki can be asked, below `/api/v1`.

- **Errors** are problem documents (RFC 9457) with a stable `code`, what happened, and what to do next.
- **Lists** have a `next_cursor`; `limit`, `cursor` and `count` work the same everywhere. A cursor is for the list and
  the filters it was made with.
- **`Idempotency-Key`** on a POST: the same key with the same body gives the first answer for 24 hours; with another
  body 422; while the first is under way 409.
- **`ETag`** of a job is its version; a change needs it in `If-Match` (428 without, 412 if it changed since).
- **`Prefer: wait=30`** on the start of a run waits for its end.
- Secrets are masked as `***` in everything that is answered.
"""


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
            "description": "A session. ID is of the installation; without TLS, on loopback, the name has no prefix.",
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
