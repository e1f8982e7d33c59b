"""The kinds of job: a command, a Python function, a verification, and those that the caller hands in."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, TypeAlias

from pydantic import (
    BaseModel,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from tsuzuki.config.schema.annotations import keys_of
from tsuzuki.config.schema.field_types import (
    Argv,
    ByteSize,
    Environment,
    Expects,
    Function,
    InvalidValue,
    Text,
)
from tsuzuki.config.schema.job_keys import COMMON_KEYS
from tsuzuki.config.schema.problems import ConfigProblem
from tsuzuki.config.schema.strict_model import StrictModel
from tsuzuki.config.schema.validation import unknown_key, wrong_value
from tsuzuki.config.yaml.nodes import KeyPath
from tsuzuki.model.abilities import MAIN_MODULE
from tsuzuki.model.errors import ConfigurationError
from tsuzuki.model.isolation import Isolation
from tsuzuki.model.job_question import JobQuestion
from tsuzuki.model.suggestion import closest, did_you_mean

SectionReader: TypeAlias = Callable[..., BaseModel | None]
"""Reads a section, or with `only` some keys of it."""


@dataclass(frozen=True, kw_only=True)
class JobKind:
    """A kind of job: its name, which is also the name of its handler, and the keys of its own.

    `options_model` validates the keys of one job; the result, under the names of the model's fields,
    becomes the `options` of its `JobSpec`. `section_model` validates what all jobs of the kind
    share, such as the address of a service: a top-level key with the name of the kind. `refusal`
    says why no job of the kind can be used; its keys are unknown then, and not read. `check_files` reads the files
    that the section names; it gets a function that reads the section, and the workspace, and raises
    `ConfigurationError`. `questions` ask a person for its keys, and `usual_schedule` is offered for when.
    `starter_variables` are lines of `.env.example`, after a comment with the kind's name. `starter_section` and
    `starter_job` are YAML for the starter file, where they are comments: the section, and one job below `jobs:`.
    """

    name: str
    options_model: type[BaseModel]
    section_model: type[BaseModel] | None = None
    refusal: ConfigurationError | None = None
    check_files: Callable[[SectionReader, Path], None] | None = None
    questions: tuple[JobQuestion, ...] = ()
    usual_schedule: str = "daily at 07:00"
    starter_variables: str = ""
    starter_section: str = ""
    starter_job: str = ""

    @classmethod
    def refused(cls, name: str, why: ConfigurationError) -> "JobKind":
        return cls(name=name, options_model=BaseModel, refusal=why)

    def __post_init__(self) -> None:
        taken = self.keys & COMMON_KEYS
        if taken:
            raise ValueError(f"keys of every job cannot be keys of a kind: {sorted(taken)}")

    @property
    def keys(self) -> frozenset[str]:
        return frozenset(keys_of(self.options_model))


class _CommandOptions(StrictModel):
    argv: Argv = Field(alias="command")
    """The program and its arguments. No shell is run."""
    environment: Environment = Field(default_factory=dict)
    """Variables of the command. `${NAME}` is filled in when it starts, and never stored."""
    cwd: Text | None = None
    """Its folder, relative to the workspace."""


class _PythonOptions(StrictModel):
    function: Function = Field(alias="python")
    """The function, importable from the workspace."""
    program: Text | None = None
    """For a function of `__main__`: the program that defined the job, which alone executes it."""
    isolation: Isolation | None = None
    """Where the function is executed: in a `process` that can be killed, or in a `thread` of the worker."""
    memory: ByteSize | None = None
    """With `isolation: process`: a run whose processes have more resident memory fails with `memory_limit`."""

    @model_validator(mode="after")
    def _check_isolation(self) -> "_PythonOptions":
        is_process = self.isolation is Isolation.PROCESS
        if is_process and self.function.startswith(f"{MAIN_MODULE}:"):
            raise InvalidValue(
                f"`{self.function}` cannot run in a separate process because no other process can "
                "import it",
                hint="Move the function into a module, or set isolation: thread.",
                code="not_isolable",
            )
        if self.memory is not None and not is_process:
            raise InvalidValue(
                "`memory` requires a separate process, but this function runs in a thread",
                hint="Add isolation: process, or remove `memory`.",
                code="not_isolated",
            )
        return self

    @model_serializer(mode="wrap")
    def _without_empty(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Most functions have none of these: their jobs are stored without the keys."""
        values: dict[str, Any] = serialize(self)
        return {key: value for key, value in values.items() if value is not None}


class _VerifyOptions(StrictModel):
    parts: Annotated[list[Text], Expects("a list of parts")] = Field(default_factory=list)
    """What to verify, such as `ticks`; without it everything."""
    days: Annotated[int, Expects("a whole number from 1 to 3660")] = Field(
        default=30, ge=1, le=3660
    )
    """Number of days whose ticks and posts are verified."""
    calls: Annotated[int, Expects("a whole number from 0 to 10000")] = Field(
        default=20, ge=0, le=10_000
    )
    """Upper bound of the calls to each source with a quota."""


COMMAND = JobKind(name="command", options_model=_CommandOptions)
PYTHON = JobKind(name="python", options_model=_PythonOptions)
VERIFY = JobKind(name="verify", options_model=_VerifyOptions)
NO_KINDS: Mapping[str, JobKind] = MappingProxyType({})


def with_built_in(kinds: Mapping[str, JobKind]) -> dict[str, JobKind]:
    """All kinds by name: `command`, `python`, `verify`, and `kinds`."""
    return {COMMAND.name: COMMAND, PYTHON.name: PYTHON, VERIFY.name: VERIFY, **kinds}


def nothing_to_run(name: str, path: KeyPath) -> ConfigProblem:
    return ConfigProblem(
        path=path,
        message=f"job `{name}` has nothing to run",
        hint="Add one of `command:`, `python:` and `type:`.",
        code="missing_key",
        at_key=True,
    )


def refusal_of(body: object, path: KeyPath, kinds: Mapping[str, JobKind]) -> ConfigProblem | None:
    """The one problem of a job whose kind is refused: why."""
    written = body.get("type") if isinstance(body, Mapping) else None
    kind = kinds.get(written) if isinstance(written, str) else None
    if kind is None or kind.refusal is None:
        return None
    why = kind.refusal
    return ConfigProblem(
        path=(*path, "type"), message=why.message, hint=why.hint, code=why.specific_code
    )


def find_kind(
    name: str,
    body: Mapping[str, Any],
    *,
    path: KeyPath,
    kinds: Mapping[str, JobKind],
    problems: list[ConfigProblem],
) -> JobKind | None:
    """The kind of the job `name`, or None. The `problems` of its keys are added in both cases."""
    refused = refusal_of(body, path, kinds)
    if refused is not None:
        problems.append(refused)
        return None
    kind = _named_kind(name, body, path, kinds)
    if isinstance(kind, ConfigProblem):
        problems.extend(_problems_without_kind(kind, body, path, kinds))
        return None
    known = COMMON_KEYS | kind.keys
    problems.extend(
        _key_of_other_kind(path, key, kind, kinds) or unknown_key((*path, key), (key,), known)
        for key in body
        if key not in known
    )
    return kind


def _named_kind(
    name: str, body: Mapping[str, Any], path: KeyPath, kinds: Mapping[str, JobKind]
) -> JobKind | ConfigProblem:
    """The one kind that the body names: by `type`, or by the key `command` or `python`."""
    run_keys = [key for key in body if key in (COMMAND.name, PYTHON.name)]
    if "type" not in body:
        if len(run_keys) > 1:
            return _ambiguous(path, run_keys[1], f"`{run_keys[0]}`")
        return kinds[run_keys[0]] if run_keys else nothing_to_run(name, path)
    written = body["type"]
    kind = kinds.get(written) if isinstance(written, str) else None
    if kind is None:
        expected = f"one of {', '.join(sorted(kinds))}"
        problem = wrong_value((*path, "type"), ("type",), expected, written)
        return replace(problem, hint=did_you_mean(str(written), kinds).strip() or None)
    others = [key for key in run_keys if key != kind.name]
    return _ambiguous(path, others[0], f"`type: {kind.name}`") if others else kind


def _ambiguous(path: KeyPath, key: str, other: str) -> ConfigProblem:
    return ConfigProblem(
        path=(*path, key),
        message=f"`{key}` cannot be combined with {other}",
        hint="A job runs one thing: keep one of the two.",
        code="ambiguous_job",
        at_key=True,
    )


def _problems_without_kind(
    missing: ConfigProblem, body: Mapping[str, Any], path: KeyPath, kinds: Mapping[str, JobKind]
) -> list[ConfigProblem]:
    """The problems of a job whose kind is unknown. A misspelt `comand` explains that already. Keys are suggested that
    every job, a command or a function has: those of other kinds might be refused when the kind is known."""
    known = COMMON_KEYS.union(*(kind.keys for kind in kinds.values()))
    suggested = COMMON_KEYS | COMMAND.keys | PYTHON.keys
    unknown = [key for key in body if key not in known]
    problems = [unknown_key((*path, key), (key,), suggested) for key in unknown]
    is_misspelt = any(closest(key, known) in ("command", "python", "type") for key in unknown)
    return problems if is_misspelt else [missing, *problems]


def _key_of_other_kind(
    path: KeyPath, key: str, kind: JobKind, kinds: Mapping[str, JobKind]
) -> ConfigProblem | None:
    """The problem of a `key` that only jobs of another kind have."""
    owners = sorted(other.name for other in kinds.values() if key in other.keys)
    if not owners:
        return None
    return ConfigProblem(
        path=(*path, key),
        message=f"`{key}` does not apply to jobs of type {kind.name}",
        hint=f"Remove it here; it applies to jobs of type {', '.join(owners)}.",
        code="unknown_key",
        at_key=True,
    )
