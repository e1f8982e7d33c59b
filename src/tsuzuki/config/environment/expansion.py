"""Expand `${NAME}` and `${NAME:-default}` in text. `$$` is a dollar sign.

A `$` before any other character is literal. The default is used if the variable is unset or empty.
"""

import re
from collections.abc import Callable, Mapping

from tsuzuki.model.errors import ConfigurationError, Place

_REFERENCE = re.compile(r"\$(?:(?P<dollar>\$)|\{(?P<body>[^}]*)(?P<closed>\}?))")
_BODY = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>.*))?", re.DOTALL)


def expand(text: str, environ: Mapping[str, str], *, place: Place | None = None) -> str:
    """Expand the variables in `text`. Raises `ConfigurationError` if one is not set."""

    def value(name: str, default: str | None) -> str:
        found = environ.get(name)
        if default is not None:
            return found or default
        if found is None:
            raise ConfigurationError(
                f"the environment variable {name} is not set",
                hint=f"Set it, or write ${{{name}:-…}} with a default.",
                place=place,
                code="variable_missing",
            )
        return found

    return _substitute(text, value, place)


def variable_names(text: str) -> frozenset[str]:
    """The variables that `text` refers to."""
    return frozenset(name for name, _ in _references(text))


def required_names(text: str) -> frozenset[str]:
    """The variables that must be set for `text`: those without a default."""
    return frozenset(name for name, default in _references(text) if default is None)


def _references(text: str) -> list[tuple[str, str | None]]:
    found: list[tuple[str, str | None]] = []

    def note(name: str, default: str | None) -> str:
        found.append((name, default))
        return ""

    _substitute(text, note, None)
    return found


def literal_part(text: str) -> str:
    """The part of `text` that is readable in the file: defaults stay, variables are left out."""
    return _substitute(text, lambda _, default: default or "", None)


def _substitute(text: str, value: Callable[[str, str | None], str], place: Place | None) -> str:
    def replacement(reference: re.Match[str]) -> str:
        if reference["dollar"]:
            return "$"
        body = _BODY.fullmatch(reference["body"])
        if body is None or not reference["closed"]:
            raise ConfigurationError(
                f"`{reference[0]}` is not a variable",
                hint="Write ${NAME} or ${NAME:-default}; write $$ for a dollar sign.",
                place=place,
                code="variable_syntax",
            )
        return value(body["name"], body["default"])

    return _REFERENCE.sub(replacement, text)
