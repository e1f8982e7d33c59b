"""The top-level keys of `tsuzuki.yaml`, and reading a whole file.

All problems of a file are found in one pass and reported together, each at its place.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from typing import Annotated, Any

from pydantic import Field, StrictInt

from tsuzuki.config.schema.annotations import keys_of
from tsuzuki.config.schema.field_types import Contact, Expects, Location, Zone
from tsuzuki.config.schema.job_kinds import JobKind, refusal_of
from tsuzuki.config.schema.jobs import DEFAULT_TIMEZONE, read_job
from tsuzuki.config.schema.problems import ConfigProblem, invalid
from tsuzuki.config.schema.sections import read_sections, section_names
from tsuzuki.config.schema.strict_model import StrictModel
from tsuzuki.config.schema.validation import unknown_key, validate
from tsuzuki.config.schema.webhooks import SECTION as WEBHOOKS
from tsuzuki.config.schema.webhooks import Webhook, read_webhooks
from tsuzuki.config.yaml.document import YamlDocument, parse_document
from tsuzuki.config.yaml.source import YamlSource
from tsuzuki.model.errors import ConfigurationError
from tsuzuki.model.job import JobSpec
from tsuzuki.model.jsontext import encode

_FILES_MAX = 4
_JOBS_MAX = 25_000
"""More jobs than one file can have."""


class FileKeys(StrictModel):
    """The top-level keys, without webhooks and the sections of kinds of job."""

    version: Annotated[StrictInt, Field(ge=1, le=1), Expects("1, the only version")] = 1
    """The version of the file."""
    database_url: Location | None = None
    """The database. Without it: `sqlite:///tsuzuki.db` in the workspace."""
    database_direct_url: Location | None = None
    """The same PostgreSQL past its pooler, for what a pooler in transaction mode cannot carry: wake-ups."""
    redis_url: Location | None = None
    """The Redis through which processes wake each other; without it they use the database."""
    timezone: Zone = DEFAULT_TIMEZONE
    """The time zone of schedules that name none."""
    log_archive: Location | None = None
    """Where old logs go: a folder, or a URL such as `s3://bucket/folder`. Without it: `.tsuzuki/logs` in the
    workspace with SQLite, nowhere with PostgreSQL."""
    contact: Contact | None = None
    """An email address or a web address that requests to other servers name, so that their owners can reach you."""
    jobs: Annotated[dict[str, Any], Expects("a mapping of names to jobs")] | None = None
    """The jobs by name."""


def file_keys() -> list[str]:
    """The top-level keys without the sections of kinds of job."""
    return [*keys_of(FileKeys), WEBHOOKS]


@dataclass(frozen=True, kw_only=True)
class RefusedJob:
    """A job whose kind is refused. Its keys were not read."""

    name: str
    enabled: bool
    problem: ConfigurationError


@dataclass(frozen=True, kw_only=True)
class ConfigFile:
    """The content of a valid file. Variables in URLs and sections are not expanded yet."""

    document: YamlDocument
    database_url: str | None
    database_direct_url: str | None
    redis_url: str | None
    timezone: str
    log_archive: str | None
    contact: str | None
    sections: Mapping[str, Mapping[str, Any]]
    jobs: tuple[JobSpec, ...]
    refused_jobs: tuple[RefusedJob, ...]
    webhooks: tuple[Webhook, ...] = ()


@dataclass(frozen=True, eq=False)
class _Kinds:
    """Kinds of job, the same only if they are the same object: compared one by one they would cost more than
    reading the file."""

    kinds: Mapping[str, JobKind]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Kinds) and other.kinds is self.kinds

    def __hash__(self) -> int:
        return id(self.kinds)


def read_config_file(document: YamlDocument, *, kinds: Mapping[str, JobKind]) -> ConfigFile:
    """Read a `document`. Raises `InvalidFile` with all problems of it; refused jobs alone are none. The last few
    are cached by their text: one command reads the file several times, and it may have thousands of jobs."""
    return _read(document.source, _Kinds(kinds))


@lru_cache(maxsize=_FILES_MAX)
def _read(source: YamlSource, of: _Kinds) -> ConfigFile:
    document, kinds = parse_document(source, with_duplicates=True), of.kinds
    data = {} if document.data is None else document.data
    known = [*file_keys(), *section_names(kinds)]
    if not isinstance(data, dict):
        message = f"the file must be a mapping with the keys {', '.join(known)}"
        raise invalid([ConfigProblem(path=(), message=message)], document)
    problems = [unknown_key((key,), (key,), known) for key in data if key not in known]
    sections = read_sections(data, kinds, problems)
    webhooks = read_webhooks(data, problems)
    own = {key: value for key, value in data.items() if key in keys_of(FileKeys)}
    top = validate(FileKeys, own, path=(), problems=problems)
    bodies = _job_bodies(data)
    refusals = _refusals(bodies, kinds)
    timezone = top.timezone if top else DEFAULT_TIMEZONE
    jobs = [
        _read_job(_Body(name, body, encode(body)), timezone, of)
        for name, body in bodies.items()
        if name not in refusals
    ]
    problems.extend(chain.from_iterable(job.problems for job in jobs))
    if top is None or problems or document.duplicates:
        raise invalid([*problems, *refusals.values()], document)
    return ConfigFile(
        document=document,
        database_url=top.database_url,
        database_direct_url=top.database_direct_url,
        redis_url=top.redis_url,
        timezone=top.timezone,
        log_archive=top.log_archive,
        contact=top.contact,
        sections=sections,
        webhooks=webhooks,
        jobs=tuple(job.spec for job in jobs if job.spec is not None),
        refused_jobs=tuple(
            RefusedJob(
                name=name,
                enabled=bodies[name].get("enabled") is not False,
                problem=problem.as_error(document),
            )
            for name, problem in refusals.items()
        ),
    )


def locations_in(source: YamlSource) -> ConfigFile:
    """What a file with mistakes says of where things are. Of a file that is no YAML, each line is read by itself."""
    try:
        document = parse_document(source, with_duplicates=True)
    except ConfigurationError:
        lines = [line for line in source.text.splitlines() if _LOCATION.match(line)]
        document = parse_document(YamlSource(file=source.file, text="\n".join(lines)))
    data = document.data if isinstance(document.data, dict) else {}

    def location(key: str) -> str | None:
        return data[key] if isinstance(data.get(key), str) else None

    return ConfigFile(
        document=document,
        database_url=location("database_url"),
        database_direct_url=location("database_direct_url"),
        redis_url=location("redis_url"),
        log_archive=location("log_archive"),
        timezone=DEFAULT_TIMEZONE,
        contact=None,
        sections={},
        jobs=(),
        refused_jobs=(),
    )


_LOCATION = re.compile(r"(?:database_url|database_direct_url|redis_url|log_archive): *\S")


@dataclass(frozen=True)
class _Body:
    """A job as it is written. Two are the same if their JSON is: 1, 1.0 and true differ."""

    name: str
    data: Any = field(compare=False)
    text: str


@dataclass(frozen=True, kw_only=True)
class _JobRead:
    spec: JobSpec | None
    problems: tuple[ConfigProblem, ...]


@lru_cache(maxsize=_JOBS_MAX)
def _read_job(body: _Body, timezone: str, of: _Kinds) -> _JobRead:
    """A job of the file. Cached, because an edit of one job reads the file again with all the others in it."""
    problems: list[ConfigProblem] = []
    spec = read_job(
        body.name,
        body.data,
        path=("jobs", body.name),
        kinds=of.kinds,
        default_timezone=timezone,
        problems=problems,
    )
    return _JobRead(spec=spec, problems=tuple(problems))


def _refusals(bodies: Mapping[str, Any], kinds: Mapping[str, JobKind]) -> dict[str, ConfigProblem]:
    """The jobs whose kind is refused, each with its problem."""
    found = {name: refusal_of(body, ("jobs", name), kinds) for name, body in bodies.items()}
    return {name: problem for name, problem in found.items() if problem is not None}


def _job_bodies(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """The jobs, or none if `jobs` is not a mapping: `FileKeys` has reported that."""
    jobs = data.get("jobs")
    return jobs if isinstance(jobs, dict) else {}
