"""What a job can be: a command, a Python function, or whatever else the caller hands in."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from tsuzuki.config.schema.annotations import keys_of
from tsuzuki.config.schema.fields import Argv, Environment, Function, Text
from tsuzuki.config.schema.job_keys import COMMON_KEYS
from tsuzuki.config.schema.problems import Problem
from tsuzuki.config.schema.validation import unknown, wrong
from tsuzuki.config.yaml.nodes import KeyPath
from tsuzuki.model.suggestion import closest, did_you_mean


@dataclass(frozen=True, kw_only=True)
class JobKind:
    """A kind of work by its name, which is also its handler's, and the keys that only it reads.

    A job's own keys are validated by `options_model`; what comes out, under the names of the
    model's fields, becomes the `options` of its `JobSpec`. What all jobs of the kind share, such as
    where its outside service is, stands once under a top-level key of the kind's name and is read
    by `section_model`.
    """

    name: str
    options_model: type[BaseModel]
    section_model: type[BaseModel] | None = None

    def __post_init__(self) -> None:
        taken = self.keys & COMMON_KEYS
        if taken:
            raise ValueError(f"keys of every job cannot be keys of a kind: {sorted(taken)}")

    @property
    def keys(self) -> frozenset[str]:
        return frozenset(keys_of(self.options_model))


class _CommandOptions(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    argv: Argv = Field(alias="command")
    environment: Environment = Field(default_factory=dict)
    cwd: Text | None = None


class _PythonOptions(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    function: Function = Field(alias="python")


NO_KINDS: Mapping[str, JobKind] = MappingProxyType({})

_CHOOSE = "Give it one of `command:`, `python:` or `type:`."

COMMAND = JobKind(name="command", options_model=_CommandOptions)
PYTHON = JobKind(name="python", options_model=_PythonOptions)


def with_built_in(kinds: Mapping[str, JobKind]) -> dict[str, JobKind]:
    """All kinds by name: ours, and those handed in."""
    return {COMMAND.name: COMMAND, PYTHON.name: PYTHON, **kinds}


def options_of(options: BaseModel) -> dict[str, Any]:
    """What a kind keeps of its keys, as JSON can hold it."""
    return options.model_dump(mode="json", by_alias=False)


def nothing_to_run(name: str, path: KeyPath) -> Problem:
    return Problem(
        path=path,
        message=f"job `{name}` does not say what to run",
        hint=_CHOOSE,
        code="missing_key",
        at_key=True,
    )


def find_kind(
    name: str,
    body: Mapping[str, Any],
    *,
    path: KeyPath,
    kinds: Mapping[str, JobKind],
    problems: list[Problem],
) -> JobKind | None:
    """The kind of the job `name`, after a look at all its keys; or None, and `problems` say why."""
    kind = _named_kind(name, body, path, kinds)
    if isinstance(kind, Problem):
        problems.extend(_without_kind(kind, body, path, kinds))
        return None
    problems.extend(_key_problems(kind, body, path, kinds))
    return kind


def _named_kind(
    name: str, body: Mapping[str, Any], path: KeyPath, kinds: Mapping[str, JobKind]
) -> JobKind | Problem:
    """The one kind that the body names, by its `type` or by a key that gives it away."""
    telling = [key for key in body if key in (COMMAND.name, PYTHON.name)]
    if "type" not in body:
        if len(telling) > 1:
            return _excluded(path, telling[1], f"`{telling[0]}`")
        return kinds[telling[0]] if telling else nothing_to_run(name, path)
    written = body["type"]
    kind = kinds.get(written) if isinstance(written, str) else None
    if kind is None:
        problem = wrong((*path, "type"), ("type",), f"one of {', '.join(sorted(kinds))}", written)
        return replace(problem, hint=did_you_mean(str(written), kinds).strip() or None)
    excluded = [key for key in telling if key != kind.name]
    return _excluded(path, excluded[0], f"`type: {kind.name}`") if excluded else kind


def _excluded(path: KeyPath, key: str, other: str) -> Problem:
    return Problem(
        path=(*path, key),
        message=f"`{key}` does not go together with {other}",
        hint="A job runs one thing: keep one of the two.",
        code="ambiguous_job",
        at_key=True,
    )


def _without_kind(
    missing: Problem, body: Mapping[str, Any], path: KeyPath, kinds: Mapping[str, JobKind]
) -> list[Problem]:
    """What can be said about a job whose kind is not known: a misspelt `comand` says it all."""
    known = COMMON_KEYS.union(*(kind.keys for kind in kinds.values()))
    strangers = [key for key in body if key not in known]
    problems = [unknown((*path, key), (key,), known) for key in strangers]
    misspelt = any(closest(key, known) in ("command", "python", "type") for key in strangers)
    return problems if misspelt else [missing, *problems]


def _key_problems(
    kind: JobKind, body: Mapping[str, Any], path: KeyPath, kinds: Mapping[str, JobKind]
) -> list[Problem]:
    known = COMMON_KEYS | kind.keys
    return [
        _foreign(path, key, kind, kinds) or unknown((*path, key), (key,), known)
        for key in body
        if key not in known
    ]


def _foreign(
    path: KeyPath, key: str, kind: JobKind, kinds: Mapping[str, JobKind]
) -> Problem | None:
    """The problem of a `key` that exists, but only for jobs of another kind."""
    owners = sorted(other.name for other in kinds.values() if key in other.keys)
    if not owners:
        return None
    return Problem(
        path=(*path, key),
        message=f"`{key}` has no meaning for a job of type {kind.name}",
        hint=f"It is read by jobs of type {', '.join(owners)}. Remove it here.",
        code="unknown_key",
        at_key=True,
    )
