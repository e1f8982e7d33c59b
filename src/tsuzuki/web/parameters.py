"""Parameters of a request: unknown ones are refused by name, and what is wrong is told part by part."""

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel

from tsuzuki.model.suggestion import did_you_mean
from tsuzuki.web.problems import InvalidRequest, PartProblem

if TYPE_CHECKING:
    from fastapi.routing import APIRoute


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
    problems = [
        unknown_part(f"query.{name}", name, known, "parameter")
        for name in dict.fromkeys(name for name, _ in query)
        if name not in known
    ]
    given = [("query." + name, value) for name, value in query]
    given += [("path." + name, str(value)) for name, value in request.path_params.items()]
    problems += [
        PartProblem(where=where, message="a NUL character is not allowed", code="not_text")
        for where, value in given
        if "\x00" in value
    ]
    if problems:
        raise InvalidRequest(problems)


def unknown_part(where: str, name: str, known: Iterable[str], noun: str) -> PartProblem:
    known = sorted(known)
    listed = f"Known are: {', '.join(known)}." if known else f"There is no {noun} here."
    return PartProblem(
        where=where,
        message=f"there is no {noun} {name!r}",
        code=f"unknown_{noun}",
        hint=did_you_mean(name, known) + listed,
    )


def invalid_parts(error: RequestValidationError, route: "APIRoute") -> list[PartProblem]:
    """Each thing that is wrong, with its place in the request."""
    return [_part(problem, route) for problem in error.errors()]


def _part(problem: dict[str, Any], route: "APIRoute") -> PartProblem:
    path = [str(step) for step in problem["loc"]]
    where = ".".join(path)
    if problem["type"] == "extra_forbidden" and path[0] == "body":
        return unknown_part(where, path[-1], _body_names(route, path[1:-1]), "field")
    if problem["type"] == "missing":
        return PartProblem(where=where, message=f"{path[-1]!r} is missing", code="missing")
    return PartProblem(where=where, message=f"{where}: {problem['msg']}")


def _body_names(route: "APIRoute", path: Iterable[str]) -> Iterable[str]:
    """The names of the fields of the object at this path in the body."""
    model: Any = route.body_field.field_info.annotation if route.body_field else None
    for name in path:
        model = model.model_fields[name].annotation if name in _model_names(model) else None
    return _model_names(model)
