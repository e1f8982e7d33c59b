"""What an installation says about one kind of job: its part of the file, and variables over it.

A section `books` with a key `api_key` is also read from `TSUZUKI_BOOKS_API_KEY`, and from the file
that `TSUZUKI_BOOKS_API_KEY_FILE` names. Variables are filled in when the section is asked for: a key
that only one collector needs is missed only by whoever uses that collector.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from tsuzuki.config.environment.expansion import expand
from tsuzuki.config.schema.annotations import keys_of, model_at, other_variable
from tsuzuki.config.schema.problems import Problem, invalid
from tsuzuki.config.schema.validation import validated
from tsuzuki.config.yaml.document import Document
from tsuzuki.config.yaml.nodes import KeyPath


@dataclass(frozen=True, kw_only=True)
class Section:
    """One section before its variables are filled in."""

    name: str
    model: type[BaseModel]
    written: Mapping[str, Any]
    document: Document | None
    environ: Mapping[str, str] = field(repr=False)
    from_environment: Callable[[str], str | None] = field(repr=False)

    def read(self) -> BaseModel:
        """The section with everything filled in. Raises `ConfigurationError`."""
        body = self._expanded(self.written, (self.name,))
        for path in _leaves(self.model):
            given = self._given(path)
            if given is not None:
                _put(body, path, given)
        problems: list[Problem] = []
        found = validated(self.model, body, path=(self.name,), problems=problems)
        if found is None:
            raise invalid(problems, self.document)
        return found

    def _given(self, path: KeyPath) -> str | None:
        """What the environment says for a key."""
        own = "_".join(("TSUZUKI", self.name, *map(str, path))).upper()
        other = other_variable(self.model, path)
        found = self.from_environment(own)
        return self.from_environment(other) if found is None and other else found

    def _expanded(self, value: Any, path: KeyPath) -> Any:
        if isinstance(value, str):
            place = self.document.place_of_value(path) if self.document else None
            return expand(value, self.environ, place=place)
        if isinstance(value, dict):
            return {key: self._expanded(part, (*path, key)) for key, part in value.items()}
        if isinstance(value, list):
            return [self._expanded(part, (*path, index)) for index, part in enumerate(value)]
        return value


def _leaves(model: type[BaseModel], path: KeyPath = ()) -> Iterator[KeyPath]:
    """The way to every key of a model that is not a mapping of its own."""
    for key in keys_of(model):
        inner = model_at(model, (key,))
        if inner is None:
            yield (*path, key)
        else:
            yield from _leaves(inner, (*path, key))


def _put(body: dict[str, Any], path: KeyPath, value: str) -> None:
    *way, last = path
    for step in way:
        body = body.setdefault(str(step), {})
    body[str(last)] = value
