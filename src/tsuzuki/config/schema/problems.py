"""Problems of a definition: found by key path, then reported with line and column of the file."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tsuzuki.config.yaml.document import YamlDocument
from tsuzuki.config.yaml.nodes import KeyPath
from tsuzuki.model.errors import ConfigurationError, FilePlace


@dataclass(frozen=True, kw_only=True)
class ConfigProblem:
    """One problem at `path`: of the key itself (`at_key`), or of its value. The line is not quoted if it
    `is_secret`."""

    path: KeyPath
    message: str
    hint: str | None = None
    code: str = ConfigurationError.code
    at_key: bool = False
    is_secret: bool = False

    def as_error(self, document: YamlDocument | None) -> ConfigurationError:
        """The problem as an error, with its place if it is in a file."""
        return ConfigurationError(
            self.message, hint=self.hint, place=self._place(document), code=self.code
        )

    def _place(self, document: YamlDocument | None) -> FilePlace | None:
        if document is None:
            return None
        find = document.place_of_key if self.at_key else document.place_of_value
        place = find(self.path)
        return replace(place, text=None) if place and self.is_secret else place


class InvalidFile(ConfigurationError):
    """All problems of a file, or of one definition, from top to bottom.

    Its own message, hint, place and code are those of the first problem.
    """

    def __init__(self, problems: Sequence[ConfigurationError]) -> None:
        first, *others = problems
        more = f" (and {len(others)} more)" if others else ""
        super().__init__(
            f"{first.message}{more}",
            hint=first.hint,
            place=first.place,
            code=first.specific_code,
        )
        self.problems: tuple[ConfigurationError, ...] = tuple(problems)

    def as_dict(self) -> dict[str, Any]:
        return {**super().as_dict(), "problems": [problem.as_dict() for problem in self.problems]}


def invalid(problems: Iterable[ConfigProblem], document: YamlDocument | None = None) -> InvalidFile:
    """All `problems` as one error, with the duplicate keys of the document, in the order of the file."""
    found = [problem.as_error(document) for problem in problems]
    duplicates = document.duplicates if document else ()
    return InvalidFile(sorted([*found, *duplicates], key=_position))


def _position(error: ConfigurationError) -> tuple[int, int]:
    place = error.place
    return (place.line or 0, place.column or 0) if place else (0, 0)


def format_path(path: KeyPath) -> str:
    """A key path as text: `backoff.cap`, `tags[1]`."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join(steps).removeprefix(".")
