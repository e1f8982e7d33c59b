"""Parameters of a request: unknown ones are refused by name, and what is wrong is told part by part."""

import re
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel

from tsuzuki.model.suggestion import did_you_mean
from tsuzuki.web.problems import InvalidRequest, PartProblem

if TYPE_CHECKING:
    from fastapi.routing import APIRoute

PROBLEMS_MAX = 50
"""How many wrong parts of one request are told: each takes a while to explain."""
_QUOTED = re.compile("'([^']*)'")


def query_names(route: "APIRoute") -> set[str]:
    """The names of the query parameters that a route has."""
    names: set[str] = set()
    pending = [route.dependant]
    while pending:
        dependant = pending.pop()
        pending += dependant.dependencies
        for field in dependant.query_params:
            names |= set(_model_names(field.field_info.annotation)) or {field.alias}
    return names


def _model_names(annotation: Any) -> Iterable[str]:
    is_model = isinstance(annotation, type) and issubclass(annotation, BaseModel)
    return annotation.model_fields if is_model else ()


def check_query(request: Request, known: Collection[str]) -> None:
    """Refuse parameters that are not known, and characters that no name, key or text of ours has."""
    # Most requests have none, and to read that costs more than all else here.
    query = request.query_params.multi_items() if request.scope["query_string"] else []
    unknown = list(dict.fromkeys(name for name, _ in query if name not in known))
    given = [("query." + name, value) for name, value in query]
    given += [("path." + name, str(value)) for name, value in request.path_params.items()]
    with_nul = [where for where, value in given if "\x00" in value]
    if not unknown and not with_nul:
        return
    problems = [
        *(
            unknown_part(f"query.{name}", name, known, "parameter")
            for name in unknown[:PROBLEMS_MAX]
        ),
        *(
            PartProblem(where=where, message="NUL characters are not allowed", code="not_text")
            for where in with_nul[:PROBLEMS_MAX]
        ),
    ]
    raise InvalidRequest(problems[:PROBLEMS_MAX], total=len(unknown) + len(with_nul))


def unknown_part(where: str, name: str, known: Iterable[str], noun: str) -> PartProblem:
    known = sorted(known)
    listed = f"Known: {', '.join(known)}." if known else f"No {noun} is accepted here."
    return PartProblem(
        where=where,
        message=f"unknown {noun} {name!r}",
        code=f"unknown_{noun}",
        hint=did_you_mean(name, known) + listed,
    )


def invalid_request(error: RequestValidationError, route: "APIRoute") -> InvalidRequest:
    """What is wrong, thing by thing, each with its place in the request."""
    found = error.errors()
    return InvalidRequest(
        [_part(problem, route) for problem in found[:PROBLEMS_MAX]], total=len(found)
    )


def _part(problem: dict[str, Any], route: "APIRoute") -> PartProblem:
    path = [str(step) for step in problem["loc"]]
    where = ".".join(path)
    if problem["type"] == "extra_forbidden" and path[0] == "body":
        return unknown_part(where, path[-1], _body_names(route, path[1:-1]), "field")
    if problem["type"] == "missing":
        return PartProblem(where=where, message=f"{path[-1]!r} is missing", code="missing")
    return PartProblem(
        where=where, message=f"{where}: {problem['msg']}", hint=_nearest_choice(problem)
    )


def _nearest_choice(problem: dict[str, Any]) -> str | None:
    """The one of a few allowed words that was probably meant."""
    if problem["type"] not in ("enum", "literal_error"):
        return None
    allowed = _QUOTED.findall(problem["ctx"]["expected"])
    return did_you_mean(str(problem["input"]), allowed).strip() or None


def _body_names(route: "APIRoute", path: Iterable[str]) -> Iterable[str]:
    """The names of the fields of the object at this path in the body."""
    model: Any = route.body_field.field_info.annotation if route.body_field else None
    for name in path:
        model = model.model_fields[name].annotation if name in _model_names(model) else None
    return _model_names(model)
