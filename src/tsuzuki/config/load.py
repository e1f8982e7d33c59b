"""Load the configuration of a process. Precedence: flags, environment, file, defaults.

Environment and current folder are handed in; nothing here looks at the process itself.
"""

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import BaseModel

from tsuzuki.config.environment.expansion import expand, required_names, variable_names
from tsuzuki.config.environment.urls import check_redis_url, normalise_database_url
from tsuzuki.config.environment.variables import ConfiguredValue, read_variable
from tsuzuki.config.schema.config_file import ConfigFile, RefusedJob, read_config_file
from tsuzuki.config.schema.job_kinds import NO_KINDS, JobKind
from tsuzuki.config.schema.jobs import DEFAULT_TIMEZONE
from tsuzuki.config.schema.sections import Section, section_models
from tsuzuki.config.yaml.document import Document, read_document
from tsuzuki.model.errors import Place
from tsuzuki.model.job import JobSpec

FILE_NAME = "tsuzuki.yaml"
FILE_VARIABLE = "TSUZUKI_CONFIG"

_DEFAULT_DATABASE = ConfiguredValue(text="sqlite:///tsuzuki.db", name="database_url")


@dataclass(frozen=True, kw_only=True)
class UnsetVariable:
    """A variable that the file refers to and that has no value, and where."""

    name: str
    place: Place | None


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """The configuration of a process. `workspace` is the folder of the file, or else the current one.
    All paths are absolute, and variables are expanded, except in sections."""

    workspace: Path
    file: Path | None
    database_url: str = field(repr=False)
    redis_url: str | None = field(repr=False)
    timezone: str
    log_archive: str | None = field(repr=False)
    jobs: tuple[JobSpec, ...]
    refused_jobs: tuple[RefusedJob, ...] = ()
    """Jobs of the file whose kind is refused."""
    sections: Mapping[str, Section] = field(default_factory=dict, compare=False, repr=False)
    """The settings for whole kinds of job, not yet expanded."""
    origins: Mapping[str, str] = field(default_factory=dict, compare=False)
    """The origin of each field: a flag, a variable or a place in the file. The rest are defaults."""

    secret_variables: frozenset[str] = field(default=frozenset(), compare=False)
    """The variables that URLs and sections are filled in from: no command inherits them."""
    unset_variables: tuple[UnsetVariable, ...] = field(default=(), compare=False)
    """The variables without a default that sections refer to and that are not set."""
    document: Document | None = field(default=None, compare=False, repr=False)

    def place_of_job(self, name: str) -> Place | None:
        """Where a job stands in the file; None if it does not."""
        if self.document is None or name not in ((self.document.data or {}).get("jobs") or {}):
            return None
        return replace(self.document.place_of_key(("jobs", name)), text=None)

    def section(self, kind: str, *, only: Collection[str] | None = None) -> BaseModel | None:
        """The section of a `kind` of job with its variables expanded, or `only` some keys of it; None for a
        kind without one. Raises `ConfigurationError`."""
        found = self.sections.get(kind)
        return found.read(only=only) if found else None


def load_configuration(
    *,
    file: Path | None = None,
    database_url: str | None = None,
    environ: Mapping[str, str],
    cwd: Path,
    kinds: Mapping[str, JobKind] = NO_KINDS,
) -> Configuration:
    """Load the configuration of this process; `file` and `database_url` are its flags.

    Raises `ConfigurationError` (`InvalidFile` for the content of the file) or `Unreachable`.
    """
    here = Path(os.path.abspath(cwd))  # noqa: PTH100 - resolves `..`, but no symbolic links
    path = find_file(file=file, environ=environ, cwd=here)
    content = read_config_file(read_document(path), kinds=kinds) if path else None
    workspace = path.parent if path else here
    given = _given_values(database_url, content, environ, here)
    sections = _sections(content, kinds, environ, here)
    redis, archive = given.get("redis_url"), given.get("log_archive")
    return Configuration(
        workspace=workspace,
        file=path,
        database_url=normalise_database_url(
            given.get("database_url", _DEFAULT_DATABASE), workspace=workspace
        ),
        redis_url=check_redis_url(redis) if redis else None,
        timezone=content.timezone if content else DEFAULT_TIMEZONE,
        log_archive=_absolute(archive.text, workspace) if archive else None,
        jobs=content.jobs if content else (),
        refused_jobs=content.refused_jobs if content else (),
        sections=sections,
        secret_variables=_secret_variables(content, sections),
        unset_variables=tuple(_unset_variables(sections, environ)),
        document=content.document if content else None,
        origins={
            **({"file": _file_origin(file, environ)} if path else {}),
            **(_key_places(content, ("timezone", "jobs")) if content else {}),
            **{key: value.origin for key, value in given.items()},
        },
    )


def find_file(*, file: Path | None, environ: Mapping[str, str], cwd: Path) -> Path | None:
    """The configuration file: the one named by flag or variable, or else the nearest in `cwd` and
    the folders above. A named file is not checked here; reading it reports what is wrong."""
    named = file or environ.get(FILE_VARIABLE)
    if named:
        return Path(os.path.abspath(cwd / named))  # noqa: PTH100 - the workspace is where the link is
    candidates = (folder / FILE_NAME for folder in (cwd, *cwd.parents))
    return next(filter(_is_file, candidates), None)


def _is_file(path: Path) -> bool:
    with suppress(OSError):  # a folder above that this user may not enter
        return path.is_file()
    return False


def _given_values(
    database_flag: str | None, content: ConfigFile | None, environ: Mapping[str, str], cwd: Path
) -> dict[str, ConfiguredValue]:
    """The values given for database, Redis and log archive. The file's value is expanded only if no
    flag or variable overrides it, so that a variable missing in it does no harm."""
    flag = None
    if database_flag is not None:
        flag = ConfiguredValue(text=database_flag, name="--database-url")
    values = {
        "database_url": flag
        or read_variable("TSUZUKI_DATABASE_URL", environ, cwd=cwd)
        or _from_file("database_url", content, environ),
        "redis_url": read_variable("TSUZUKI_REDIS_URL", environ, cwd=cwd)
        or _from_file("redis_url", content, environ),
        "log_archive": _from_file("log_archive", content, environ),
    }
    return {key: value for key, value in values.items() if value}


def _from_file(
    key: str, content: ConfigFile | None, environ: Mapping[str, str]
) -> ConfiguredValue | None:
    """The value of a top-level key of the file, with its variables expanded."""
    written = getattr(content, key, None)
    if content is None or written is None:
        return None
    place = content.document.place_of_value((key,))
    text = expand(written, environ, place=place)
    return ConfiguredValue(text=text, name=f"`{key}`", place=place)


def _sections(
    content: ConfigFile | None,
    kinds: Mapping[str, JobKind],
    environ: Mapping[str, str],
    cwd: Path,
) -> dict[str, Section]:
    return {
        name: Section(
            name=name,
            model=model,
            written=content.sections.get(name, {}) if content else {},
            document=content.document if content else None,
            environ=environ,
            cwd=cwd,
        )
        for name, model in section_models(kinds).items()
    }


def _secret_variables(
    content: ConfigFile | None, sections: Mapping[str, Section]
) -> frozenset[str]:
    written = [
        getattr(content, key, None) or "" for key in ("database_url", "redis_url", "log_archive")
    ]
    in_sections = [text for section in sections.values() for _, text in section.texts()]
    return frozenset().union(*map(variable_names, (*written, *in_sections)))


def _unset_variables(
    sections: Mapping[str, Section], environ: Mapping[str, str]
) -> Iterator[UnsetVariable]:
    for section in sections.values():
        for path, text in section.texts():
            place = section.document.place_of_value(path) if section.document else None
            for name in sorted(required_names(text) - environ.keys()):
                yield UnsetVariable(name=name, place=place)


def _file_origin(flag: Path | None, environ: Mapping[str, str]) -> str:
    if flag:
        return "--config"
    return FILE_VARIABLE if environ.get(FILE_VARIABLE) else "found from here"


def _key_places(content: ConfigFile, keys: tuple[str, ...]) -> dict[str, str]:
    """The places of those of the top-level `keys` that are in the file."""
    document = content.document
    return {key: str(document.place_of_key((key,))) for key in keys if key in (document.data or {})}


def _absolute(location: str, workspace: Path) -> str:
    """A URL unchanged, a path relative to the workspace."""
    return location if "://" in location else str(workspace / location)
