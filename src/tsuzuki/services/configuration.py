"""The configuration in force as a face shows it, and the starter file of a new workspace."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tsuzuki.config import (
    FILE_NAME,
    FILE_VARIABLE,
    Configuration,
    Entry,
    UnsetVariable,
    write_starter,
)
from tsuzuki.model.errors import ConfigurationError
from tsuzuki.model.secrets import mask_secrets

__all__ = ["ConfigurationView", "new_file", "view", "write_starter"]


@dataclass(frozen=True, kw_only=True)
class ConfigurationView:
    """What counts in the end, and where it comes from. The password of the database is not in it; the
    other two URLs may hold one."""

    file: Path | None
    database_url: str
    redis_url: str | None = field(repr=False)
    timezone: str
    log_archive: str | None = field(repr=False)
    jobs: tuple[str, ...]
    refusals: tuple[ConfigurationError, ...]
    """Why jobs of the file cannot be used: their kind is refused."""
    origins: Mapping[str, str]
    sections: tuple[Entry, ...]
    """Every key of every section: the value in force as it was said. Secrets are not in it."""
    unset_variables: tuple[UnsetVariable, ...]
    """Those without which a kind of job cannot be used, though the file is right."""


def view(configuration: Configuration) -> ConfigurationView:
    return ConfigurationView(
        file=configuration.file,
        database_url=mask_secrets(configuration.database_url),
        redis_url=configuration.redis_url,
        timezone=configuration.timezone,
        log_archive=configuration.log_archive,
        jobs=tuple(spec.name for spec in configuration.jobs),
        refusals=tuple(job.problem for job in configuration.refused_jobs),
        origins=configuration.origins,
        sections=tuple(
            entry for section in configuration.sections.values() for entry in section.entries()
        ),
        unset_variables=configuration.unset_variables,
    )


def new_file(folder: Path, *, environ: Mapping[str, str], use_variable: bool) -> Path:
    """Where the file of a new workspace is written: where the variable says, if that may count, else in
    the folder by the usual name."""
    named = environ.get(FILE_VARIABLE) if use_variable else None
    return folder / (named or FILE_NAME)
