"""What a model refuses, in our own words: the key as it was written, what it must be, what it is.

Nothing of the validation library's own sentences reaches a person.
"""

from collections.abc import Collection, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from tsuzuki.config.schema.annotations import expected_words, keys_of, model_at
from tsuzuki.config.schema.fields import Refusal
from tsuzuki.config.schema.problems import Problem, path_text
from tsuzuki.config.yaml.nodes import KeyPath
from tsuzuki.model.suggestion import did_you_mean

_Model = TypeVar("_Model", bound=BaseModel)

_SHOWN_MAX = 60

# General words for fields that have none of their own, by the sort of fault and its bounds.
_GENERAL = {
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


def validated(
    model: type[_Model], body: Mapping[str, Any], *, path: KeyPath, problems: list[Problem]
) -> _Model | None:
    """`body`, which stands at `path`, as `model`; or None, and `problems` say why."""
    try:
        return model.model_validate(dict(body))
    except ValidationError as error:
        found: dict[KeyPath, Problem] = {}
        for detail in error.errors(include_url=False):
            problem = _problem(model, body, path, detail)
            # Several alternatives of one field fail together; one sentence is enough.
            found.setdefault(problem.path, problem)
        problems.extend(found.values())
        return None


def wrong(path: KeyPath, key: KeyPath, expected: str, value: object) -> Problem:
    """`key`, which stands at `path`, holds a `value` that is not what is `expected`."""
    return Problem(path=path, message=f"`{path_text(key)}` must be {expected}, not {shown(value)}")


def unknown(path: KeyPath, key: KeyPath, known: Collection[str]) -> Problem:
    """`key`, which stands at `path`, is none of the `known` ones."""
    guess = did_you_mean(str(key[-1]), known)
    return Problem(
        path=path,
        message=f"`{path_text(key)}` is not a key we know",
        hint=guess.strip() or f"Known here: {', '.join(sorted(known))}.",
        code="unknown_key",
        at_key=True,
    )


def shown(value: object) -> str:
    """`value` as it looks in a sentence: short, and as YAML writes it."""
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


def _problem(
    model: type[BaseModel], body: Mapping[str, Any], path: KeyPath, detail: ErrorDetails
) -> Problem:
    location = detail["loc"]
    kind = detail["type"]
    if kind == "missing":
        return Problem(
            path=path + location[:-1],
            message=f"`{path_text(location)}` is missing",
            code="missing_key",
            at_key=True,
        )
    if kind == "extra_forbidden":
        owner = model_at(model, location[:-1])
        return unknown(path + location, location, keys_of(owner) if owner else [])
    return _refused(model, body, path, detail)


def _refused(
    model: type[BaseModel], body: Mapping[str, Any], path: KeyPath, detail: ErrorDetails
) -> Problem:
    key, value = _reach(body, detail["loc"])
    context = detail.get("ctx", {})
    error = context.get("error")
    if isinstance(error, Refusal):
        return Problem(
            path=path + key + error.path,
            message=error.message,
            hint=error.hint,
            code=error.code,
            at_key=error.at_key,
        )
    expected = expected_words(model, key)
    if expected is None and detail["type"] == "value_error":
        return Problem(path=path + key, message=f"`{path_text(key)}`: {error}")
    general = _GENERAL.get(detail["type"], "something else").format(**context)
    return wrong(path + key, key, expected or general, value)


def _reach(body: Any, location: KeyPath) -> tuple[KeyPath, Any]:
    """The part of `location` that leads through `body`, and what is there. The rest of it, if any,
    names alternatives of a type."""
    for length, step in enumerate(location):
        try:
            body = body[step]
        except (KeyError, IndexError, TypeError):
            return location[:length], body
    return location, body
