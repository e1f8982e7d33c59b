"""Load the configuration of a process. Precedence: flags, environment, file, defaults.

Environment and current folder are handed in; nothing here looks at the process itself.
"""

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import BaseModel

from tsuzuki.config.environment.expansion import (
    HERE,
    expand,
    required_names,
    unset_names,
    variable_names,
    variable_value,
)
from tsuzuki.config.environment.urls import (
    check_direct_url,
    check_redis_url,
    normalise_database_url,
    passwords_in,
)
from tsuzuki.config.environment.variables import ConfiguredValue, file_variable, read_variable
from tsuzuki.config.location import (
    DEFAULT_DATABASE,
    FILE_VARIABLE,
    absolute_folder,
    database_url_outside_file,
    digest,
    find_file,
)
from tsuzuki.config.schema.config_file import (
    ConfigFile,
    RefusedJob,
    locations_in,
    read_config_file,
)
from tsuzuki.config.schema.job_kinds import NO_KINDS, JobKind
from tsuzuki.config.schema.jobs import DEFAULT_TIMEZONE
from tsuzuki.config.schema.sections import Section, section_models
from tsuzuki.config.schema.web import SECTION as WEB
from tsuzuki.config.schema.web import WebSection
from tsuzuki.config.schema.webhooks import Webhook, path_of, secret_variables
from tsuzuki.config.yaml.document import YamlDocument, parse_document
from tsuzuki.config.yaml.source import YamlSource, read_source
from tsuzuki.model.access import OwnerMode
from tsuzuki.model.errors import ConfigurationError, FilePlace
from tsuzuki.model.job import JobSpec


@dataclass(frozen=True, kw_only=True)
class UnsetVariable:
    """A variable that the file refers to and that has no value, and where."""

    name: str
    place: FilePlace | None


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """The configuration of a process. `workspace` is the folder of the file, or else the current one.
    All paths are absolute, and variables are expanded, except in sections."""

    workspace: Path
    file: Path | None
    database_url: str = field(repr=False)
    database_direct_url: str | None = field(default=None, repr=False)
    """The same database past a connection pooler."""
    redis_url: str | None = field(repr=False)
    timezone: str
    log_archive: str | None = field(repr=False)
    contact: str | None = None
    """What requests to other servers name, so that their owners can reach this installation's."""
    jobs: tuple[JobSpec, ...]
    refused_jobs: tuple[RefusedJob, ...] = ()
    """Jobs of the file whose kind is refused."""
    webhooks: tuple[Webhook, ...] = ()
    """Who may emit events by a request; secrets are not yet filled in."""
    sections: Mapping[str, Section] = field(default_factory=dict, compare=False, repr=False)
    """The settings for whole kinds of job, not yet expanded."""
    written_database_url: str | None = field(default=None, compare=False)
    """As the file has it: variables are not expanded, and it holds no password."""
    file_digest: str = field(default="", compare=False)
    """Of the bytes of the file that this was read from."""
    origins: Mapping[str, str] = field(default_factory=dict, compare=False)
    """The origin of each field: a flag, a variable or a place in the file. The rest are defaults."""

    secret_variables: frozenset[str] = field(default=frozenset(), compare=False)
    """The variables that URLs and sections are filled in from."""
    unset_variables: tuple[UnsetVariable, ...] = field(default=(), compare=False)
    """The variables without a default that sections and the `environment` of jobs refer to and that are not set. A
    command may still find them where its worker runs."""
    document: YamlDocument | None = field(default=None, compare=False, repr=False)
    problem: ConfigurationError | None = field(default=None, compare=False)
    """What is wrong with the file, if only its locations were asked for."""
    cwd: Path = field(default=HERE, compare=False)
    """The base of relative paths in `…_FILE` variables."""

    @property
    def archive_location(self) -> str | None:
        """Where old logs go: as configured; for SQLite else beside the workspace's file. For PostgreSQL there is no
        such default, because a folder of one machine is not there for the others."""
        if self.log_archive is not None or not self.database_url.startswith("sqlite"):
            return self.log_archive
        return str(self.workspace / ".tsuzuki" / "logs")

    @property
    def withheld_variables(self) -> frozenset[str]:
        """What no command inherits: the secret variables, and those that may name their files."""
        return self.secret_variables | frozenset(map(file_variable, self.secret_variables))

    def secrets(self, environ: Mapping[str, str]) -> Iterator[str]:
        """The texts that are secret here: what variables hold, or the files that `…_FILE` names, and passwords."""
        for name in self.secret_variables:
            with suppress(ConfigurationError):  # it is reported where it is used
                yield variable_value(name, environ, cwd=self.cwd) or ""
        for section in self.sections.values():
            yield from section.secrets()
        for url in (
            self.database_url,
            self.database_direct_url,
            self.redis_url,
            self.log_archive,
        ):
            yield from passwords_in(url)

    def place_of_job(self, name: str) -> FilePlace | None:
        """Where a job stands in the file; None if it does not."""
        if self.document is None or name not in ((self.document.data or {}).get("jobs") or {}):
            return None
        return replace(self.document.place_of_key(("jobs", name)), text=None)

    def section(self, kind: str, *, only: Collection[str] | None = None) -> BaseModel | None:
        """The section of a `kind` of job with its variables expanded, or `only` some keys of it; None for a
        kind without one. Raises `ConfigurationError`."""
        found = self.sections.get(kind)
        return found.read(only=only) if found else None

    def owner_mode(self) -> OwnerMode:
        """How a server on loopback knows its owner. Raises `ConfigurationError`."""
        section = self.section(WEB)
        return section.owner_mode if isinstance(section, WebSection) else OwnerMode.LINK


def load_configuration(
    *,
    file: Path | None = None,
    database_url: str | None = None,
    environ: Mapping[str, str],
    cwd: Path,
    kinds: Mapping[str, JobKind] = NO_KINDS,
    locations_only: bool = False,
) -> Configuration:
    """Load the configuration of this process; `file` and `database_url` are its flags. With `locations_only` a file
    with mistakes still says where the database and the log archive are, and its jobs are left out.

    Raises `ConfigurationError` (`InvalidFile` for the content of the file) or `FileUnusable`.
    """
    here = absolute_folder(cwd)
    path = find_file(file=file, environ=environ, cwd=here)
    source = read_source(path) if path else None
    content, problem = _content(source, kinds, locations_only=locations_only)
    workspace = path.parent if path else here
    given = _given_values(database_url, content, environ, here)
    sections = _sections(content, kinds, environ, here)
    webhooks = _webhooks(content, environ, here)
    redis, archive = given.get("redis_url"), given.get("log_archive")
    direct = given.get("database_direct_url")
    return Configuration(
        workspace=workspace,
        file=path,
        written_database_url=content.database_url if content else None,
        file_digest=digest(source.encode() if source else b""),
        database_url=normalise_database_url(
            given.get("database_url", DEFAULT_DATABASE), workspace=workspace
        ),
        database_direct_url=check_direct_url(direct) if direct else None,
        redis_url=check_redis_url(redis) if redis else None,
        timezone=content.timezone if content else DEFAULT_TIMEZONE,
        log_archive=_absolute(archive.text, workspace) if archive else None,
        contact=content.contact if content else None,
        jobs=content.jobs if content else (),
        refused_jobs=content.refused_jobs if content else (),
        webhooks=webhooks,
        sections=sections,
        secret_variables=_secret_variables(content, sections)
        | secret_variables(webhooks)
        | (variable_names(source.text) if source and problem else frozenset()),
        unset_variables=(
            *_unset_variables(sections, environ),
            *_unset_secrets(webhooks, environ),
            *_unset_in_jobs(content, environ),
        ),
        document=content.document if content else None,
        problem=problem,
        cwd=here,
        origins={
            **({"file": _file_origin(file, environ)} if path else {}),
            **(_key_places(content, ("timezone", "contact", "jobs")) if content else {}),
            **{key: value.origin for key, value in given.items()},
        },
    )


def _content(
    source: YamlSource | None, kinds: Mapping[str, JobKind], *, locations_only: bool
) -> tuple[ConfigFile | None, ConfigurationError | None]:
    """What the file says; with `locations_only` its mistakes too, instead of raising them."""
    if source is None:
        return None, None
    try:
        return read_config_file(parse_document(source, with_duplicates=True), kinds=kinds), None
    except ConfigurationError as problem:
        if not locations_only:
            raise
        return locations_in(source), problem


def _given_values(
    database_flag: str | None, content: ConfigFile | None, environ: Mapping[str, str], cwd: Path
) -> dict[str, ConfiguredValue]:
    """The values given for database, Redis and log archive. The file's value is expanded only if no
    flag or variable overrides it, so that a variable missing in it does no harm."""
    values = {
        "database_url": database_url_outside_file(database_flag, environ, cwd=cwd)
        or _from_file("database_url", content, environ, cwd),
        "database_direct_url": read_variable("TSUZUKI_DATABASE_DIRECT_URL", environ, cwd=cwd)
        or _from_file("database_direct_url", content, environ, cwd),
        "redis_url": read_variable("TSUZUKI_REDIS_URL", environ, cwd=cwd)
        or _from_file("redis_url", content, environ, cwd),
        "log_archive": _from_file("log_archive", content, environ, cwd),
    }
    return {key: value for key, value in values.items() if value}


def _from_file(
    key: str, content: ConfigFile | None, environ: Mapping[str, str], cwd: Path
) -> ConfiguredValue | None:
    """The value of a top-level key of the file, with its variables expanded."""
    written = getattr(content, key, None)
    if content is None or written is None:
        return None
    place = content.document.place_of_value((key,))
    text = expand(written, environ, cwd=cwd, place=place)
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


def _webhooks(
    content: ConfigFile | None, environ: Mapping[str, str], cwd: Path
) -> tuple[Webhook, ...]:
    if content is None:
        return ()
    return tuple(
        webhook.in_process(environ, cwd=cwd, place=content.document.place_of_key(path_of(webhook)))
        for webhook in content.webhooks
    )


def _secret_variables(
    content: ConfigFile | None, sections: Mapping[str, Section]
) -> frozenset[str]:
    written = [
        getattr(content, key, None) or ""
        for key in ("database_url", "database_direct_url", "redis_url", "log_archive")
    ]
    in_sections = [text for section in sections.values() for _, text in section.texts()]
    return frozenset().union(*map(variable_names, (*written, *in_sections)))


def _unset_variables(
    sections: Mapping[str, Section], environ: Mapping[str, str]
) -> Iterator[UnsetVariable]:
    for section in sections.values():
        for path, text in section.texts():
            place = section.document.place_of_value(path) if section.document else None
            for name in unset_names(required_names(text), environ):
                yield UnsetVariable(name=name, place=place)


def _unset_secrets(
    webhooks: tuple[Webhook, ...], environ: Mapping[str, str]
) -> Iterator[UnsetVariable]:
    for webhook in webhooks:
        for name in unset_names(secret_variables((webhook,)), environ):
            yield UnsetVariable(name=name, place=webhook.place)


def _unset_in_jobs(
    content: ConfigFile | None, environ: Mapping[str, str]
) -> Iterator[UnsetVariable]:
    for job in content.jobs if content else ():
        for key, text in (job.options.get("environment") or {}).items():
            required = required_names(text) if isinstance(text, str) else ()
            for name in unset_names(required, environ):
                path = ("jobs", job.name, "environment", key)
                place = content.document.place_of_value(path) if content else None
                yield UnsetVariable(name=name, place=place)


def _file_origin(flag: Path | None, environ: Mapping[str, str]) -> str:
    if flag:
        return "--config"
    return FILE_VARIABLE if environ.get(FILE_VARIABLE) else "found automatically"


def _key_places(content: ConfigFile, keys: tuple[str, ...]) -> dict[str, str]:
    """The places of those of the top-level `keys` that are in the file."""
    document = content.document
    return {key: str(document.place_of_key((key,))) for key in keys if key in (document.data or {})}


def _absolute(location: str, workspace: Path) -> str:
    """A URL unchanged, a path relative to the workspace."""
    return location if "://" in location else str(workspace / location)
