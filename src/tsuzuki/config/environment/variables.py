"""Read environment variables, directly or from the file that `…_FILE` names.

The environment is handed in; nothing here looks at the process itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tsuzuki.model.errors import ConfigurationError, FilePlace

_SECRET_SIZE_MAX = 64 * 1024


@dataclass(frozen=True, kw_only=True)
class ConfiguredValue:
    """The text of a setting and its origin: the `name` of the flag, variable or key, and its `place`
    if it is in the configuration file."""

    text: str
    name: str
    place: FilePlace | None = None

    @property
    def origin(self) -> str:
        return str(self.place) if self.place else self.name


def file_variable(name: str) -> str:
    """The variable that may name a file with the value of the variable `name`."""
    return f"{name}_FILE"


def read_variable(name: str, environ: Mapping[str, str], *, cwd: Path) -> ConfiguredValue | None:
    """The value of the variable `name`, or of the file that `name` + `_FILE` names. An empty variable
    counts as unset. Raises `ConfigurationError`."""
    direct = environ.get(name)
    named_file = file_variable(name)
    file = environ.get(named_file)
    if direct and file:
        raise ConfigurationError(
            f"{name} and {named_file} are both set",
            hint="Unset one of them.",
            code="variable_conflict",
        )
    if direct:
        return ConfiguredValue(text=direct, name=name)
    if file:
        text = _read_secret(file, named_file, cwd=cwd)
        return ConfiguredValue(text=text, name=named_file)
    return None


def _read_secret(path: str, variable: str, *, cwd: Path) -> str:
    try:
        with (cwd / path).open(encoding="utf-8") as stream:
            text = stream.read(_SECRET_SIZE_MAX).strip()
    except OSError as problem:
        raise _secret_error(path, variable, f"cannot be read: {problem.strerror}") from None
    except UnicodeDecodeError:
        raise _secret_error(path, variable, "cannot be read: it is not UTF-8 text") from None
    if not text:
        raise _secret_error(path, variable, "is empty")
    return text


def _secret_error(path: str, variable: str, what: str) -> ConfigurationError:
    return ConfigurationError(
        f"the file named by {variable} {what}",
        hint="Name a text file that contains only the value.",
        place=FilePlace(file=path),
        code="variable_file",
    )
