"""Sections: the settings of an installation for one kind of job, from the file and the environment.

The key `api_key` of the section `weather` is also read from `TSUZUKI_WEATHER_API_KEY`, and from the file
that `TSUZUKI_WEATHER_API_KEY_FILE` names. Variables are expanded when a section is used, so that a
missing one stops only those who use this kind of job.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from tsuzuki.config.environment.expansion import expand, variable_names
from tsuzuki.config.environment.variables import ConfiguredValue, read_variable
from tsuzuki.config.schema.annotations import (
    default_at,
    is_secret,
    keys_of,
    model_at,
    variable_alias,
)
from tsuzuki.config.schema.job_kinds import JobKind
from tsuzuki.config.schema.problems import ConfigProblem, format_path, invalid
from tsuzuki.config.schema.validation import problems_before_expansion, validate, wrong_value
from tsuzuki.config.schema.web import SECTION as WEB
from tsuzuki.config.schema.web import WebSection
from tsuzuki.config.yaml.document import YamlDocument
from tsuzuki.config.yaml.nodes import KeyPath
from tsuzuki.model.errors import ConfigurationError
from tsuzuki.model.secrets import MASK


@dataclass(frozen=True, kw_only=True)
class SectionKey:
    """One key of a section, for a reader."""

    path: KeyPath
    value: Any
    origin: str


@dataclass(frozen=True, kw_only=True)
class Section:
    """One section, not yet expanded. `cwd` is the base of relative paths in `…_FILE` variables."""

    name: str
    model: type[BaseModel]
    written: Mapping[str, Any]
    document: YamlDocument | None
    environ: Mapping[str, str] = field(repr=False)
    cwd: Path

    def read(self, *, only: Collection[str] | None = None) -> BaseModel:
        """The section with its variables expanded. With `only` these keys are read, and the rest have their
        defaults; `models.*.budget` is the key `budget` of every part of `models`. Raises `ConfigurationError`."""
        wanted = [tuple(key.split(".")) for key in (keys_of(self.model) if only is None else only)]
        body = self._expanded(_part_of(self.written, wanted), (self.name,))
        for path in _leaf_paths(self.model):
            value = self._from_environment(path) if _is_in(path, wanted) else None
            if value is not None:
                _set_path(body, path, value)
        problems: list[ConfigProblem] = []
        section = validate(self.model, body, path=(self.name,), problems=problems)
        if section is None:
            raise invalid(problems, self.document)
        return section

    def entries(self) -> "Iterator[SectionKey]":
        """Each key of the section with the value in force as it was said, and its origin. Variables are not
        expanded, and a secret from the environment is masked."""
        for path in _leaf_paths(self.model):
            written = _at(self.written, path)
            variable = self._variable(path)
            if variable is not None:
                shown = MASK if is_secret(self.model, path) else variable.text
                yield SectionKey(path=(self.name, *path), value=shown, origin=variable.origin)
            elif written is not None:
                place = self.document.place_of_value((self.name, *path)) if self.document else None
                yield SectionKey(path=(self.name, *path), value=written, origin=str(place))
            else:
                default = default_at(self.model, path)
                yield SectionKey(path=(self.name, *path), value=default, origin="default")

    def secrets(self) -> Iterator[str]:
        """The secrets that the environment gives, directly or in a file. What cannot be read is left out: it is
        reported where it is used."""
        for path in _leaf_paths(self.model):
            if is_secret(self.model, path):
                with suppress(ConfigurationError):
                    value = self._variable(path)
                    if value is not None:
                        yield value.text

    def texts(self) -> Iterator[tuple[KeyPath, str]]:
        """Each text of the section as it is written, with the path to it."""
        yield from _texts(self.written, (self.name,))

    def _from_environment(self, path: KeyPath) -> str | None:
        value = self._variable(path)
        return value.text if value else None

    def _variable(self, path: KeyPath) -> ConfiguredValue | None:
        own = "_".join(("TSUZUKI", self.name, *map(str, path))).upper()
        for variable in (own, variable_alias(self.model, path)):
            value = read_variable(variable, self.environ, cwd=self.cwd) if variable else None
            if value is not None:
                return value
        return None

    def _expanded(self, value: Any, path: KeyPath) -> Any:
        if isinstance(value, str):
            place = self.document.place_of_value(path) if self.document else None
            return expand(value, self.environ, cwd=self.cwd, place=place)
        if isinstance(value, dict):
            return {key: self._expanded(part, (*path, key)) for key, part in value.items()}
        if isinstance(value, list):
            return [self._expanded(part, (*path, index)) for index, part in enumerate(value)]
        return value


def _texts(value: Any, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from _texts(part, (*path, key))
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _texts(part, (*path, index))


def section_models(kinds: Mapping[str, JobKind]) -> dict[str, type[BaseModel]]:
    """The section model of every kind that has one, by the name of the kind, and that of the web server."""
    of_kinds = {name: kind.section_model for name, kind in kinds.items() if kind.section_model}
    return {**of_kinds, WEB: WebSection}


def section_names(kinds: Mapping[str, JobKind]) -> list[str]:
    """Every top-level key that a section may have. Whether a refused kind has one is not known."""
    return [*(name for name, kind in kinds.items() if kind.section_model or kind.refusal), WEB]


def read_sections(
    data: Mapping[str, Any], kinds: Mapping[str, JobKind], problems: list[ConfigProblem]
) -> dict[str, Mapping[str, Any]]:
    """The sections in the file, unexpanded. The `problems` of keys and literal values are added."""
    sections: dict[str, Mapping[str, Any]] = {}
    for name, model in section_models(kinds).items():
        written = data.get(name)
        if written is None:
            continue
        if not isinstance(written, dict):
            expected = f"a mapping with the keys {', '.join(keys_of(model))}"
            problems.append(wrong_value((name,), (name,), expected, written))
            continue
        found = [
            *problems_before_expansion(model, written, path=(name,)),
            *_literal_secrets(model, written, (name,)),
        ]
        problems.extend(found)
        if not found:
            sections[name] = written
    return sections


def _literal_secrets(
    model: type[BaseModel], written: Mapping[str, Any], path: KeyPath
) -> Iterator[ConfigProblem]:
    for place, text in _texts(written, path):
        if text and is_secret(model, place[len(path) :]) and not variable_names(text):
            yield ConfigProblem(
                path=place,
                message=f"`{format_path(place)}` is a secret and must not be written in the file",
                hint="Write ${NAME} instead and set that environment variable.",
                code="secret_in_file",
                is_secret=True,
            )


def _leaf_paths(model: type[BaseModel], path: KeyPath = ()) -> Iterator[KeyPath]:
    """The path to every key of a model that is not a nested model."""
    for key in keys_of(model):
        nested = model_at(model, (key,))
        if nested is None:
            yield (*path, key)
        else:
            yield from _leaf_paths(nested, (*path, key))


def _at(body: Mapping[str, Any], path: KeyPath) -> Any:
    found: Any = body
    for step in path:
        found = found.get(step) if isinstance(found, Mapping) else None
    return found


def _part_of(written: Any, wanted: Sequence[KeyPath]) -> Any:
    """What is at the `wanted` paths. A mapping on the way stays, if only empty, and what is none stays as it is:
    the model refuses it."""
    if () in wanted or not isinstance(written, Mapping):
        return written
    part = {}
    for key, value in written.items():
        deeper = [path[1:] for path in wanted if path[0] in (key, "*")]
        if deeper:
            part[key] = _part_of(value, deeper)
    return part


def _is_in(path: KeyPath, wanted: Sequence[KeyPath]) -> bool:
    """Whether a path is one of the `wanted`, or inside one."""
    return any(
        len(one) <= len(path) and all(a in (b, "*") for a, b in zip(one, path, strict=False))
        for one in wanted
    )


def _set_path(body: dict[str, Any], path: KeyPath, value: str) -> None:
    *parents, last = path
    for step in parents:
        body = body.setdefault(str(step), {})
    body[str(last)] = value
