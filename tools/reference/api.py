"""The page of the routes of the HTTP API, from the OpenAPI document that `make openapi` wrote."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.reference.markdown import code, page, table

_DOCUMENT = Path(__file__).parents[2] / "docs" / "reference" / "openapi.json"
_METHODS = ("get", "post", "put", "patch", "delete")


def api_page() -> str:
    groups: dict[str, list[tuple[str, ...]]] = {}
    paths = json.loads(_DOCUMENT.read_text(encoding="utf-8"))["paths"]
    for path, methods in paths.items():
        for method in _METHODS:
            if method in methods:
                route = methods[method]
                groups.setdefault(route.get("tags", ["other"])[0], []).append(
                    _row(path, method, route)
                )
    return page(
        "Routes of the HTTP API",
        "Every route with the right it needs; `any` is open to every principal. Bodies and answers are in"
        " [openapi.json](openapi.json); the rules of all routes are in [the guide](../guide/api.md).",
        *_sections(groups),
    )


def _sections(groups: dict[str, list[tuple[str, ...]]]) -> Iterator[str]:
    for name, rows in groups.items():
        yield f"## {name}"
        yield table(("route", "right", "parameters", "what it does"), rows)


def _row(path: str, method: str, route: dict[str, Any]) -> tuple[str, ...]:
    parameters = [one["name"] for one in route.get("parameters", []) if one["in"] == "query"]
    return (
        code(f"{method.upper()} {path}"),
        code(route.get("x-right", "")),
        " ".join(code(name) for name in parameters),
        route.get("description") or route.get("summary", ""),
    )
