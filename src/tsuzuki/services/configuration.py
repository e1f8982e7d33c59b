"""The effective configuration, as interfaces show it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tsuzuki.config import (
    FILE_NAME,
    FILE_VARIABLE,
    Configuration,
    JobKind,
    SectionKey,
    UnsetVariable,
)
from tsuzuki.model.errors import ConfigurationError
from tsuzuki.model.secrets import SecretMask, mask_secrets

__all__ = ["ConfigurationView", "new_file", "view"]


@dataclass(frozen=True, kw_only=True)
class ConfigurationView:
    """What counts in the end, and where it comes from. The password of the database is not in it; the
    other two URLs may hold one."""

    file: Path | None
    database_url: str
    database_direct_url: str | None = field(repr=False)
    redis_url: str | None = field(repr=False)
    timezone: str
    log_archive: str | None = field(repr=False)
    contact: str | None
    jobs: tuple[str, ...]
    refusals: tuple[ConfigurationError, ...]
    """Why jobs of the file cannot be used: their kind is refused."""
    origins: Mapping[str, str]
    sections: tuple[SectionKey, ...]
    """Every key of every section: the value in force as it was said. Secrets are not in it."""
    unset_variables: tuple[UnsetVariable, ...]
    """Those without which a kind of job cannot be used, though the file is right."""
    file_problem: ConfigurationError | None = None
    """What is wrong with the file, if only its locations were asked for."""
    problems: tuple[ConfigurationError, ...] = ()
    """Of the files that sections name, if they were checked."""

    def entries(self) -> list[tuple[str, object, str]]:
        """Every key, its value without secrets, and where it comes from."""
        values = {
            "file": self.file,
            "database_url": self.database_url,
            "database_direct_url": _masked(self.database_direct_url),
            "redis_url": _masked(self.redis_url),
            "timezone": self.timezone,
            "log_archive": _masked(self.log_archive),
            "contact": self.contact,
            "jobs": len(self.jobs),
        }
        mask = SecretMask()
        return [
            *((key, value, self.origins.get(key, "default")) for key, value in values.items()),
            *(
                (".".join(map(str, entry.path)), mask.value(entry.value), entry.origin)
                for entry in self.sections
            ),
        ]


def _masked(text: str | None) -> str | None:
    return None if text is None else mask_secrets(text)


def view(
    configuration: Configuration, check_files_of: Mapping[str, JobKind] | None = None
) -> ConfigurationView:
    """The files that the sections of these kinds name are read for their problems."""
    return ConfigurationView(
        file=configuration.file,
        database_url=mask_secrets(configuration.database_url),
        database_direct_url=configuration.database_direct_url,
        redis_url=configuration.redis_url,
        timezone=configuration.timezone,
        log_archive=configuration.archive_location,
        contact=configuration.contact,
        jobs=tuple(spec.name for spec in configuration.jobs),
        refusals=tuple(job.problem for job in configuration.refused_jobs),
        origins=configuration.origins,
        sections=(
            *(entry for section in configuration.sections.values() for entry in section.entries()),
            *_webhook_entries(configuration),
        ),
        unset_variables=configuration.unset_variables,
        file_problem=configuration.problem,
        problems=tuple(_file_problems(configuration, check_files_of or {})),
    )


def _webhook_entries(configuration: Configuration) -> Iterator[SectionKey]:
    """Secrets are shown as the variables that hold them."""
    for webhook in configuration.webhooks:
        shown = {"kind": webhook.kind, "event": webhook.event, "secret": webhook.variables[0]}
        for key, value in shown.items():
            yield SectionKey(
                path=("webhooks", webhook.name, key), value=value, origin=str(webhook.place)
            )


def _file_problems(
    configuration: Configuration, kinds: Mapping[str, JobKind]
) -> Iterator[ConfigurationError]:
    for name, kind in kinds.items():
        if kind.check_files is None:
            continue
        try:
            kind.check_files(partial(configuration.section, name), configuration.workspace)
        except ConfigurationError as problem:
            # What runs have in their environment is not known here.
            if problem.specific_code != "variable_missing":
                yield problem


def new_file(folder: Path, *, environ: Mapping[str, str], use_variable: bool) -> Path:
    """Where the file of a new workspace is written: where the variable says, if that may count, else in
    the folder by the usual name."""
    named = environ.get(FILE_VARIABLE) if use_variable else None
    return folder / (named or FILE_NAME)
