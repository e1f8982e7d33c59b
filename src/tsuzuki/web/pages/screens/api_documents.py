"""The API for people: every route with its right, its parameters and its answers. Public, as the document is."""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Annotated, Any, NamedTuple

from fastapi import Depends, Request, Response

from tsuzuki.model.errors import NotAuthenticated
from tsuzuki.web.documents import openapi_of
from tsuzuki.web.pages.route import Screen, render_public
from tsuzuki.web.pages.viewer import Viewer, viewer_of
from tsuzuki.web.security.authentication import authenticate

screen = Screen()

_BOLD = re.compile(r"\*\*(.+?)\*\*")


class ApiParameter(NamedTuple):
    """Of a path, a query or a header; or a field of the body."""

    name: str
    place: str
    is_required: bool
    description: str


class Operation(NamedTuple):
    id: str
    method: str
    path: str
    summary: str
    description: str
    right: str
    parameters: list[ApiParameter]
    statuses: list[str]


async def known_viewer(request: Request) -> Viewer:
    """With the menu for a browser that is signed in, and without it for any other."""
    with suppress(NotAuthenticated):
        request.state.principal = await authenticate(request, request.app.state.authenticator)
    return viewer_of(request)


@screen.public("/docs")
def api_documents(request: Request, viewer: Annotated[Viewer, Depends(known_viewer)]) -> Response:
    document = openapi_of(request.app)
    nouns: dict[str, list[Operation]] = {}
    for noun, operation in _operations(document):
        nouns.setdefault(noun, []).append(operation)
    about = document["info"]["description"].split("\n- ")
    return render_public(
        viewer,
        "screens/api_documents.html",
        nouns=nouns,
        about=[_BOLD.sub(r"\1", line).replace("`", "") for line in about],
        version=document["info"]["version"],
    )


def _operations(document: Mapping[str, Any]) -> Iterator[tuple[str, Operation]]:
    schemas = document["components"]["schemas"]
    for path, operations in document["paths"].items():
        for method, about in operations.items():
            summary, _, rest = about.get("description", "").partition("\n")
            operation = Operation(
                id=about["operationId"],
                method=method.upper(),
                path=path,
                summary=summary,
                description=rest.strip(),
                right=str(about["x-right"]),
                parameters=[*_parameters(about), *_fields(about, schemas)],
                statuses=list(about["responses"]),
            )
            yield about.get("tags", ["other"])[0], operation


def _parameters(about: Mapping[str, Any]) -> Iterator[ApiParameter]:
    for given in about.get("parameters", ()):
        description = given.get("description", "")
        yield ApiParameter(given["name"], given["in"], given.get("required", False), description)


def _fields(about: Mapping[str, Any], schemas: Mapping[str, Any]) -> Iterator[ApiParameter]:
    """Of a body that is one of the named schemas."""
    content = about.get("requestBody", {}).get("content", {})
    reference = content.get("application/json", {}).get("schema", {}).get("$ref", "")
    schema = schemas.get(reference.rpartition("/")[2], {})
    for name, field in schema.get("properties", {}).items():
        is_required = name in schema.get("required", ())
        yield ApiParameter(name, "body", is_required, field.get("description", ""))
