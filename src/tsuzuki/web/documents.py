"""The OpenAPI document, and a page that shows it. The page loads nothing from elsewhere and has no script."""

from html import escape
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi
from fastapi.responses import HTMLResponse, JSONResponse

from tsuzuki.web.links import add_links
from tsuzuki.web.route import ApiRoute
from tsuzuki.web.security.authentication import SESSION_COOKIE
from tsuzuki.web.security.rights import public

router = APIRouter(route_class=ApiRoute, tags=["documents"])

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

PAGE_POLICY = "default-src 'none'; style-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
STYLE = """\
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 0 auto; padding: 1rem; }
h2 { margin-top: 2rem; } code { font-family: ui-monospace, monospace; overflow-wrap: anywhere; }
details { border-top: 1px solid #8886; padding: .4rem 0; } summary { cursor: pointer; }
table { border-collapse: collapse; } td, th { text-align: start; padding: .1rem 1rem .1rem 0; vertical-align: top; }
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
        "session": {"type": "apiKey", "in": "cookie", "name": SESSION_COOKIE},
    }
    for schema in ("HTTPValidationError", "ValidationError"):
        components.get("schemas", {}).pop(schema, None)
    add_links(document)
    return document


@router.get("/openapi.json", dependencies=[public()], response_class=JSONResponse)
def openapi_document(request: Request) -> JSONResponse:
    """This document."""
    return JSONResponse(openapi_of(request.app))


@router.get("/docs", dependencies=[public()], response_class=HTMLResponse)
def docs(request: Request) -> HTMLResponse:
    """The same for people."""
    page = render(openapi_of(request.app))
    return HTMLResponse(page, headers={"Content-Security-Policy": PAGE_POLICY})


@router.get(
    "/docs/style.css",
    dependencies=[public()],
    response_class=Response,
    responses={200: {"content": {"text/css": {"schema": {"type": "string"}}}}},
)
async def docs_style() -> Response:
    """The style of the page."""
    return Response(STYLE, media_type="text/css", headers={"Cache-Control": "max-age=3600"})


def render(document: dict[str, Any]) -> str:
    """Every route with its right, its parameters and its answers, grouped by noun."""
    nouns: dict[str, list[str]] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            noun = operation.get("tags", ["other"])[0]
            nouns.setdefault(noun, []).append(_operation(method.upper(), path, operation))
    sections = "".join(
        f"<h2>{escape(noun)}</h2>{''.join(operations)}" for noun, operations in nouns.items()
    )
    return (
        "<!doctype html><html lang=en><meta charset=utf-8>"
        '<meta name=viewport content="width=device-width, initial-scale=1">'
        "<title>Tsuzuki API</title><link rel=stylesheet href=/docs/style.css>"
        f"<h1>Tsuzuki API {escape(document['info']['version'])}</h1>"
        f"<p>{_paragraphs(document['info']['description'])}</p>"
        f"<p>The document for programs: <a href=/openapi.json>/openapi.json</a></p>{sections}</html>"
    )


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    parameters = "".join(
        f"<tr><td><code>{escape(parameter['name'])}</code><td>{escape(parameter['in'])}"
        f"<td>{escape(parameter.get('description', ''))}"
        for parameter in operation.get("parameters", ())
    )
    answers = ", ".join(map(escape, operation["responses"]))
    return (
        f"<details><summary><code>{method} {escape(path)}</code> {escape(_summary(operation))}</summary>"
        f"<p>{_paragraphs(operation.get('description', ''))}</p>"
        f"<p>Right: <code>{escape(str(operation['x-right']))}</code></p>"
        + (f"<table>{parameters}</table>" if parameters else "")
        + f"<p>Answers: {answers}</p></details>"
    )


def _summary(operation: dict[str, Any]) -> str:
    text: str = operation.get("description", "")
    return text.partition("\n")[0]


def _paragraphs(text: str) -> str:
    return "<br>".join(escape(line) for line in text.splitlines())
