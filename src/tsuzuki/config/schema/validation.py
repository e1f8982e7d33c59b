"""Validate a body against a pydantic model, and translate the errors into problems of our own.

A message names the key as it is written, what it must be, and what it is. No sentence of pydantic
reaches a user.
"""

from collections.abc import Collection, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from tsuzuki.config.environment.expansion import variable_names
from tsuzuki.config.schema.annotations import expected_words, keys_of, model_at
from tsuzuki.config.schema.field_types import InvalidValue
from tsuzuki.config.schema.problems import ConfigProblem, format_path
from tsuzuki.config.yaml.nodes import KeyPath
from tsuzuki.model.errors import ConfigurationError
from tsuzuki.model.suggestion import did_you_mean

_Model = TypeVar("_Model", bound=BaseModel)

_SHOWN_MAX = 60

# The words after "must be" for a field without `Expects`, by pydantic's type of error.
EXPECTED_BY_ERROR = {
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "string_type": "text",
    "string_too_short": "text of at least {min_length} characters",
    "string_too_long": "text of at most {max_length} characters",
    "string_pattern_mismatch": "text that matches {pattern}",
    "list_type": "a list",
    "tuple_type": "a list",
    "set_type": "a list",
    "frozen_set_type": "a list",
    "too_short": "at least {min_length} long",
    "too_long": "at most {max_length} long",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "enum": "one of {expected}",
    "literal_error": "one of {expected}",
    "greater_than": "above {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "below {lt}",
    "less_than_equal": "at most {le}",
    "url_parsing": "a URL",
    "url_scheme": "a URL that begins with {expected_schemes}",
}


def validate(
    model: type[_Model], body: Mapping[str, Any], *, path: KeyPath, problems: list[ConfigProblem]
) -> _Model | None:
    """`body`, which is at `path`, as `model`. If it is invalid: None, and its `problems` are added."""
    try:
        return model.model_validate(dict(body))
    except ValidationError as error:
        details = error.errors(include_url=False)
        problems.extend(_problems(model, body, path, details))
        return None


def problems_before_expansion(
    model: type[BaseModel], body: Mapping[str, Any], *, path: KeyPath
) -> list[ConfigProblem]:
    """The problems of a `body` whose variables are not expanded yet. Whether a text with a variable is what its
    key must be is not known before that."""
    try:
        model.model_validate(dict(body))
    except ValidationError as error:
        details = error.errors(include_url=False)
        return _problems(
            model, body, path, [detail for detail in details if not _may_become_valid(body, detail)]
        )
    return []


def wrong_value(path: KeyPath, key: KeyPath, expected: str, value: object) -> ConfigProblem:
    """The problem of `key`, which is at `path`: its `value` is not what is `expected`."""
    message = f"`{format_path(key)}` must be {expected}, not {format_value(value)}"
    return ConfigProblem(path=path, message=message)


def unknown_key(path: KeyPath, key: KeyPath, known: Collection[str]) -> ConfigProblem:
    """The problem of `key`, which is at `path`: it is none of the `known` keys."""
    guess = did_you_mean(str(key[-1]), known)
    return ConfigProblem(
        path=path,
        message=f"unknown key `{format_path(key)}`",
        hint=guess.strip() or f"Known keys: {', '.join(sorted(known))}.",
        code="unknown_key",
        at_key=True,
    )


def format_value(value: object) -> str:
    """`value` for a message: short, and as YAML writes it."""
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "a mapping" if value else "an empty mapping"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    text = repr(value)
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}…"


def _problems(
    model: type[BaseModel], body: Mapping[str, Any], path: KeyPath, details: list[ErrorDetails]
) -> list[ConfigProblem]:
    found: dict[KeyPath, ConfigProblem] = {}
    for detail in details:
        problem = _problem(model, body, path, detail)
        # The alternatives of a union fail together: one problem is enough.
        found.setdefault(problem.path, problem)
    return list(found.values())


def _may_become_valid(body: Mapping[str, Any], detail: ErrorDetails) -> bool:
    """Whether it is the text of a variable that is wrong here. A key that takes no text at all stays wrong, and so
    does what a validator refuses with a code of its own, such as a password that is written out."""
    if detail["type"] in ("missing", "extra_forbidden") or detail["type"].endswith("_type"):
        return False
    key, value = _value_at(body, detail["loc"])
    error = detail.get("ctx", {}).get("error")
    has_own_code = (
        isinstance(error, InvalidValue) and error.as_problem(key).code != ConfigurationError.code
    )
    return isinstance(value, str) and bool(variable_names(value)) and not has_own_code


def _problem(
    model: type[BaseModel], body: Mapping[str, Any], path: KeyPath, detail: ErrorDetails
) -> ConfigProblem:
    location = detail["loc"]
    if detail["type"] == "missing":
        return ConfigProblem(
            path=path + location[:-1],
            message=f"`{format_path(location)}` is missing",
            code="missing_key",
            at_key=True,
        )
    if detail["type"] == "extra_forbidden":
        owner = model_at(model, location[:-1])
        return unknown_key(path + location, location, keys_of(owner) if owner else [])
    key, value = _value_at(body, location)
    context = detail.get("ctx", {})
    error = context.get("error")
    if isinstance(error, InvalidValue):
        return error.as_problem(path + key)
    expected = expected_words(model, key)
    if expected is None and detail["type"] == "value_error":
        return ConfigProblem(path=path + key, message=f"`{format_path(key)}`: {error}")
    general = EXPECTED_BY_ERROR.get(detail["type"], "something else").format(**context)
    return wrong_value(path + key, key, expected or general, value)


def _value_at(body: Any, location: KeyPath) -> tuple[KeyPath, Any]:
    """The part of `location` that exists in `body`, and the value there. The rest of it names the
    alternatives of a union."""
    for length, step in enumerate(location):
        try:
            body = body[step]
        except (KeyError, IndexError, TypeError):
            return location[:length], body
    return location, body
