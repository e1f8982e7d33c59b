"""Joins the parsed configuration file and the driver-only reader: commands that only look start fast.

A record of the parsed file holds what a reading command needs: the URL of the database as it is written, the jobs,
and the revisions of the tables. It is made by the ordinary way, and found by a digest of the file, of this program
and of the installed distributions. With a collector of another distribution there is none: what its code says may
change without notice.
"""

import hashlib
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tsuzuki.config.environment.expansion import expand
from tsuzuki.config.environment.urls import normalise_database_url
from tsuzuki.config.environment.variables import ConfiguredValue
from tsuzuki.config.location import (
    DEFAULT_DATABASE,
    absolute_folder,
    database_url_outside_file,
    digest,
    find_file,
)
from tsuzuki.config.parsed_files import cache_folder, read_record, write_record
from tsuzuki.model.clock import SystemClock
from tsuzuki.model.job import JobSpec
from tsuzuki.services.reader import CannotRead, JobReader, Reader, RunReader
from tsuzuki.store.reader.reader import open_reader
from tsuzuki.store.rows import columns_of, spec_from

if TYPE_CHECKING:
    from tsuzuki.wiring.resources import Resources

__all__ = ["CannotRead", "keep_record", "opened_reader"]

PACKAGE = Path(__file__).parents[1]
DISTRIBUTION_SUFFIXES = (".dist-info", ".egg-info")


@dataclass(frozen=True, kw_only=True)
class _Record:
    database_url: str | None
    jobs: list[JobSpec]
    revisions: Mapping[str, str]
    """By version table."""
    built_in: frozenset[str]


@contextmanager
def opened_reader(
    *,
    config_file: Path | None,
    database_url: str | None,
    environ: Mapping[str, str],
    cwd: Path | None,
) -> Iterator[Reader]:
    """Raises `CannotRead`, inside the block too, or any of our errors: then the ordinary way says what is wrong."""
    here = absolute_folder(cwd or Path())
    file = find_file(file=config_file, environ=environ, cwd=here)
    record = _record(file, environ)
    workspace = file.parent if file else here
    given = database_url_outside_file(database_url, environ, cwd=here)
    if given is None and record.database_url is not None:
        text = expand(record.database_url, environ, cwd=here)
        given = ConfiguredValue(text=text, name="`database_url`")
    url = normalise_database_url(given or DEFAULT_DATABASE, workspace=workspace)
    with open_reader(url) as rows:
        rows.require_revisions(record.revisions)
        yield Reader(
            jobs=JobReader(rows, record.jobs, SystemClock(), record.built_in), runs=RunReader(rows)
        )


def keep_record(resources: "Resources") -> None:
    """Keep what the next reading command needs, if it is all in order."""
    configuration, collectors = resources.configuration, resources.collectors
    folder = cache_folder(resources.environ)
    if folder is None or collectors.distributions or collectors.problems:
        return
    if configuration.refused_jobs or configuration.problem:
        return
    record = {
        "database_url": configuration.written_database_url,
        "jobs": [columns_of(spec) for spec in configuration.jobs],
        "built_in": sorted(resources.built_in_jobs()),
        "revisions": {
            component.version_table: component.newest() for component in resources.tables.current
        },
    }
    write_record(folder, _key(configuration.file_digest), record)


def _record(file: Path | None, environ: Mapping[str, str]) -> _Record:
    folder = cache_folder(environ)
    if file and not file.is_file():  # reading a pipe would block
        raise CannotRead(f"{file} is not a regular file")
    try:
        content = file.read_bytes() if file else b""
    except OSError as problem:
        raise CannotRead(str(problem)) from problem
    found = read_record(folder, _key(digest(content))) if folder else None
    if found is None:
        raise CannotRead("the file was not parsed yet")
    try:
        return _Record(
            database_url=found["database_url"],
            jobs=[spec_from(columns) for columns in found["jobs"]],
            revisions=found["revisions"],
            built_in=frozenset(found["built_in"]),
        )
    except (KeyError, TypeError, ValueError) as problem:
        raise CannotRead("the record is damaged") from problem


def _key(file_digest: str) -> str:
    """Of a file's content as this program, with what is installed beside it, reads it."""
    found = hashlib.sha256(f"{file_digest} {sys.version}".encode())
    for line in (*_program_files(PACKAGE), *_distributions()):
        found.update(os.fsencode(line))
    return found.hexdigest()


def _program_files(package: Path) -> Iterator[str]:
    for folder, inner, names in os.walk(package):
        inner[:] = sorted(name for name in inner if name != "__pycache__")
        for name in sorted(names):
            status = os.stat(f"{folder}/{name}")  # noqa: PTH116 - hundreds of files, at every start
            yield f"{folder}/{name} {status.st_mtime_ns} {status.st_size}\n"


def _distributions() -> Iterator[str]:
    for folder in sys.path:
        with suppress(OSError), os.scandir(folder) as entries:
            found = [entry for entry in entries if entry.name.endswith(DISTRIBUTION_SUFFIXES)]
            yield from sorted(f"{entry.path} {entry.stat().st_mtime_ns}\n" for entry in found)
