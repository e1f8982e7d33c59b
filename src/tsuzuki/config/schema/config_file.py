"""The shape of `tsuzuki.yaml`, and the way from it to job specifications.

Everything that is wrong is found in one pass and reported together, each problem at its own place.
A body that comes from elsewhere than a file is read by the same rules (`parse_job`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StrictInt

from tsuzuki.config.schema.annotations import keys_of
from tsuzuki.config.schema.fields import Expects, Location, Zone
from tsuzuki.config.schema.job_kinds import JobKind
from tsuzuki.config.schema.jobs import DEFAULT_TIMEZONE, read_job
from tsuzuki.config.schema.problems import Problem, invalid
from tsuzuki.config.schema.validation import unknown, validated, wrong
from tsuzuki.config.yaml.document import Document
from tsuzuki.model.job import JobSpec


class _FileKeys(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    version: Annotated[StrictInt, Field(ge=1, le=1), Expects("1, the only version there is")] = 1
    database_url: Location | None = None
    redis_url: Location | None = None
    timezone: Zone = DEFAULT_TIMEZONE
    log_archive: Location | None = None
    jobs: Annotated[dict[str, Any], Expects("a mapping of names to jobs")] | None = None


@dataclass(frozen=True, kw_only=True)
class ConfigFile:
    """What a valid file says. URLs are as written: their variables are not filled in yet."""

    document: Document
    database_url: str | None
    redis_url: str | None
    timezone: str
    log_archive: str | None
    sections: Mapping[str, Mapping[str, Any]]
    jobs: tuple[JobSpec, ...]


def read_config_file(document: Document, *, kinds: Mapping[str, JobKind]) -> ConfigFile:
    """What `document` says. Raises `InvalidFile` with everything that is wrong with it."""
    data = {} if document.data is None else document.data
    if not isinstance(data, dict):
        known = (*keys_of(_FileKeys), *_section_models(kinds))
        expected = f"a mapping with the keys {', '.join(known)}"
        raise invalid([Problem(path=(), message=f"the file must be {expected}")], document)
    problems: list[Problem] = []
    sections = _sections(data, kinds, problems)
    top = _top(data, kinds, problems)
    read = partial(
        read_job,
        kinds=kinds,
        default_timezone=top.timezone if top else DEFAULT_TIMEZONE,
        problems=problems,
    )
    jobs = [read(name, body, path=("jobs", name)) for name, body in _job_bodies(data).items()]
    if top is None or problems:
        raise invalid(problems, document)
    return ConfigFile(
        document=document,
        database_url=top.database_url,
        redis_url=top.redis_url,
        timezone=top.timezone,
        log_archive=top.log_archive,
        sections=sections,
        jobs=tuple(job for job in jobs if job is not None),
    )


def _section_models(kinds: Mapping[str, JobKind]) -> dict[str, type[BaseModel]]:
    return {name: kind.section_model for name, kind in kinds.items() if kind.section_model}


def _sections(
    data: Mapping[str, Any], kinds: Mapping[str, JobKind], problems: list[Problem]
) -> dict[str, Mapping[str, Any]]:
    """What stands in the file for whole kinds of job. Variables are filled in when a section is
    asked for, so here only keys and fixed values can be wrong."""
    found: dict[str, Mapping[str, Any]] = {}
    for name, model in _section_models(kinds).items():
        written = data.get(name)
        if written is None:
            continue
        if not isinstance(written, dict):
            expected = f"a mapping with the keys {', '.join(keys_of(model))}"
            problems.append(wrong((name,), (name,), expected, written))
        elif validated(model, written, path=(name,), problems=problems) is not None:
            found[name] = written
    return found


def _top(
    data: Mapping[str, Any], kinds: Mapping[str, JobKind], problems: list[Problem]
) -> _FileKeys | None:
    """The keys of every installation; whatever else stands beside them is a stranger."""
    names = _section_models(kinds).keys()
    known = [*keys_of(_FileKeys), *names]
    problems.extend(unknown((key,), (key,), known) for key in data if key not in known)
    own = {key: value for key, value in data.items() if key in keys_of(_FileKeys)}
    return validated(_FileKeys, own, path=(), problems=problems)


def _job_bodies(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """The jobs as far as they can be told apart; if not, `_FileKeys` has already said so."""
    jobs = data.get("jobs")
    return jobs if isinstance(jobs, dict) else {}
