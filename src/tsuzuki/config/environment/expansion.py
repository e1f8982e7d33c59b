"""Expand `${NAME}` and `${NAME:-default}` in text. `$$` is a dollar sign.

A `$` before any other character is literal. A variable that is unset or empty is read from the file that
`NAME_FILE` names; the default is used if there is neither.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from tsuzuki.config.environment.variables import file_variable, read_variable
from tsuzuki.model.errors import ConfigurationError, FilePlace

_REFERENCE = re.compile(r"\$(?:(?P<dollar>\$)|\{(?P<body>[^}]*)(?P<closed>\}?))")
HERE = Path()
_BODY = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>.*))?", re.DOTALL)


def expand(
    text: str, environ: Mapping[str, str], *, cwd: Path = HERE, place: FilePlace | None = None
) -> str:
    """Expand the variables in `text`; `cwd` is the base of relative paths in `…_FILE` variables. Raises
    `ConfigurationError` if a variable is not set, or if its file cannot be read."""

    def value(name: str, default: str | None) -> str:
        found = variable_value(name, environ, cwd=cwd)
        if default is not None:
            return found or default
        if found is None:
            raise ConfigurationError(
                f"environment variable {name} is not set",
                hint=f"Set it, or give a default: ${{{name}:-…}}",
                place=place,
                code="variable_missing",
            )
        return found

    return _substitute(text, value, place)


def variable_value(name: str, environ: Mapping[str, str], *, cwd: Path = HERE) -> str | None:
    """The value of the variable, or of the file that `NAME_FILE` names; None if there is neither.

    A variable that is set wins: the other one may be there for another program. Raises `ConfigurationError`.
    """
    direct = environ.get(name)
    if direct:
        return direct
    found = read_variable(name, environ, cwd=cwd)
    return found.text if found else direct


def unset_names(names: Iterable[str], environ: Mapping[str, str]) -> list[str]:
    """Those of the variables that are given neither directly nor by a file, sorted."""
    return sorted(
        name for name in names if name not in environ and not environ.get(file_variable(name))
    )


def variable_names(text: str) -> frozenset[str]:
    """The variables that `text` refers to."""
    return frozenset(name for name, _ in _references(text))


def required_names(text: str) -> frozenset[str]:
    """The variables that must be set for `text`: those without a default."""
    return frozenset(name for name, default in _references(text) if default is None)


def _references(text: str) -> Iterator[tuple[str, str | None]]:
    """Names and defaults. What is not a variable is left to `expand`, which says so."""
    for reference in _REFERENCE.finditer(text):
        body = _BODY.fullmatch(reference["body"] or "")
        if body is not None and reference["closed"]:
            yield body["name"], body["default"]


def literal_part(text: str) -> str:
    """The part of `text` that is readable in the file: defaults stay, variables are left out."""
    return _substitute(text, lambda _, default: default or "", None)


def _substitute(text: str, value: Callable[[str, str | None], str], place: FilePlace | None) -> str:
    def replacement(reference: re.Match[str]) -> str:
        if reference["dollar"]:
            return "$"
        body = _BODY.fullmatch(reference["body"])
        if body is None or not reference["closed"]:
            raise ConfigurationError(
                f"`{reference[0]}` is not a valid variable reference",
                hint="Write ${NAME} or ${NAME:-default}; write $$ for a dollar sign.",
                place=place,
                code="variable_syntax",
            )
        return value(body["name"], body["default"])

    return _REFERENCE.sub(replacement, text)
