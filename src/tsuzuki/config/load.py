"""What this process is told: flags over environment over file over defaults, read once.

Environment and current folder are handed in; nothing here looks at the process itself.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel

from tsuzuki.config.environment.expansion import expand
from tsuzuki.config.environment.urls import database_url as checked_database_url
from tsuzuki.config.environment.urls import redis_url as checked_redis_url
from tsuzuki.config.schema.config_file import ConfigFile, read_config_file
from tsuzuki.config.schema.job_kinds import NO_KINDS, JobKind
from tsuzuki.config.schema.jobs import DEFAULT_TIMEZONE
from tsuzuki.config.schema.sections import Section
from tsuzuki.config.yaml.document import read_document
from tsuzuki.model.errors import ConfigurationError, Place
from tsuzuki.model.job import JobSpec

FILE_NAME = "tsuzuki.yaml"
FILE_VARIABLE = "TSUZUKI_CONFIG"
DEFAULT_DATABASE_URL = "sqlite:///tsuzuki.db"

_SECRET_SIZE_MAX = 64 * 1024


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """Everything settled before anything starts. `workspace` is the folder of the file, or the
    current one; all paths are absolute and all variables filled in."""

    workspace: Path
    file: Path | None
    database_url: str = field(repr=False)
    redis_url: str | None = field(repr=False)
    timezone: str
    log_archive: str | None = field(repr=False)
    jobs: tuple[JobSpec, ...]
    sections: Mapping[str, Section] = field(default_factory=dict, compare=False, repr=False)
    """What the installation says for whole kinds of job, to be read by who needs it."""
    origins: Mapping[str, str] = field(default_factory=dict, compare=False)
    """Who said so, by field: a flag, a variable or a place in the file. The rest are defaults."""

    def section(self, kind: str) -> BaseModel | None:
        """What the installation says for jobs of this `kind`, its variables filled in; None for a
        kind that has no section. Raises `ConfigurationError`."""
        found = self.sections.get(kind)
        return found.read() if found else None


@dataclass(frozen=True, kw_only=True)
class _Given:
    """A setting as somebody gave it: the text, what they call it, and where it stands if in a
    file."""

    text: str
    name: str
    place: Place | None = None

    @property
    def origin(self) -> str:
        return str(self.place) if self.place else self.name


def load_configuration(
    *,
    file: Path | None = None,
    database_url: str | None = None,
    environ: Mapping[str, str],
    cwd: Path,
    kinds: Mapping[str, JobKind] = NO_KINDS,
) -> Configuration:
    """The configuration of this process; `file` and `database_url` are its flags.

    Raises `ConfigurationError` (as `InvalidFile` for the content of the file) or `Unreachable`.
    """
    here = Path(os.path.abspath(cwd))  # noqa: PTH100 - `..` goes, symbolic links stay
    path = find_file(file=file, environ=environ, cwd=here)
    content = read_config_file(read_document(path), kinds=kinds) if path else None
    workspace = path.parent if path else here
    given = _Settings(content=content, environ=environ, cwd=here)
    database = given.database_url(flag=database_url)
    redis = given.redis_url()
    archive = given.from_file("log_archive")
    said = {"database_url": database, "redis_url": redis, "log_archive": archive}
    return Configuration(
        workspace=workspace,
        file=path,
        database_url=_checked_database_url(database, workspace),
        redis_url=_checked_redis_url(redis),
        timezone=content.timezone if content else DEFAULT_TIMEZONE,
        log_archive=_absolute(archive.text, workspace) if archive else None,
        jobs=content.jobs if content else (),
        sections=given.sections(kinds),
        origins={
            **({"file": _file_origin(file, environ)} if path else {}),
            **(_places(content, ("timezone", "jobs")) if content else {}),
            **{key: setting.origin for key, setting in said.items() if setting},
        },
    )


def find_file(*, file: Path | None, environ: Mapping[str, str], cwd: Path) -> Path | None:
    """The file to read: the one named by flag or variable, else the nearest one in `cwd` or above.

    A file that was named is not looked at here; whoever reads it says what is wrong with it.
    """
    named = file or environ.get(FILE_VARIABLE)
    if named:
        return Path(os.path.abspath(cwd / named))  # noqa: PTH100 - the workspace is where the link is
    candidates = (folder / FILE_NAME for folder in (cwd, *cwd.parents))
    return next(filter(_is_file, candidates), None)


def _is_file(path: Path) -> bool:
    with suppress(OSError):  # a folder above that we may not enter is none of ours
        return path.is_file()
    return False


@dataclass(frozen=True, kw_only=True)
class _Settings:
    """The places a setting can come from, asked one by one."""

    content: ConfigFile | None
    environ: Mapping[str, str]
    cwd: Path

    def from_environment(self, variable: str) -> _Given | None:
        """The value of `variable`, or of the file that `variable` + `_FILE` names. Empty is unset."""
        direct = self.environ.get(variable)
        file_variable = f"{variable}_FILE"
        named = self.environ.get(file_variable)
        if direct and named:
            raise ConfigurationError(
                f"{variable} and {file_variable} are both set",
                hint="Unset one of them.",
                code="variable_conflict",
            )
        if direct:
            return _Given(text=direct, name=variable)
        return (
            _Given(text=self._secret(file_variable, named), name=file_variable) if named else None
        )

    def from_file(self, key: str) -> _Given | None:
        """The value of the top-level `key`, its variables filled in."""
        written = getattr(self.content, key, None)
        if self.content is None or written is None:
            return None
        place = self.content.document.place_of_value((key,))
        return _Given(text=expand(written, self.environ, place=place), name=f"`{key}`", place=place)

    def database_url(self, *, flag: str | None) -> _Given | None:
        return (
            (None if flag is None else _Given(text=flag, name="--database-url"))
            or self.from_environment("TSUZUKI_DATABASE_URL")
            or self.from_file("database_url")
        )

    def redis_url(self) -> _Given | None:
        return self.from_environment("TSUZUKI_REDIS_URL") or self.from_file("redis_url")

    def sections(self, kinds: Mapping[str, JobKind]) -> dict[str, Section]:
        def from_environment(variable: str) -> str | None:
            given = self.from_environment(variable)
            return given.text if given else None

        written = self.content.sections if self.content else {}
        return {
            name: Section(
                name=name,
                model=kind.section_model,
                written=written.get(name, {}),
                document=self.content.document if self.content else None,
                environ=self.environ,
                from_environment=from_environment,
            )
            for name, kind in kinds.items()
            if kind.section_model
        }

    def _secret(self, variable: str, path: str) -> str:
        try:
            with (self.cwd / path).open(encoding="utf-8") as stream:
                text = stream.read(_SECRET_SIZE_MAX).strip()
        except (OSError, UnicodeDecodeError) as problem:
            reason = problem.strerror if isinstance(problem, OSError) else "it is not UTF-8 text"
            raise ConfigurationError(
                f"the file that {variable} names cannot be read: {reason}",
                hint="Name a text file that holds the value and nothing else.",
                place=Place(file=path),
                code="variable_file",
            ) from None
        if not text:
            raise ConfigurationError(
                f"the file that {variable} names is empty",
                hint="Name a text file that holds the value and nothing else.",
                place=Place(file=path),
                code="variable_file",
            )
        return text


def _checked_database_url(given: _Given | None, workspace: Path) -> str:
    found = given or _Given(text=DEFAULT_DATABASE_URL, name="database_url")
    return checked_database_url(found.text, name=found.name, workspace=workspace, place=found.place)


def _checked_redis_url(given: _Given | None) -> str | None:
    return checked_redis_url(given.text, name=given.name, place=given.place) if given else None


def _file_origin(flag: Path | None, environ: Mapping[str, str]) -> str:
    if flag:
        return "--config"
    return FILE_VARIABLE if environ.get(FILE_VARIABLE) else "found from here"


def _places(content: ConfigFile, keys: tuple[str, ...]) -> dict[str, str]:
    """Where those of the top-level `keys` stand that the file has."""
    document = content.document
    return {key: str(document.place_of_key((key,))) for key in keys if key in (document.data or {})}


def _absolute(location: str, workspace: Path) -> str:
    """A URL as it is, a path from the workspace."""
    return location if "://" in location else str(workspace / location)
