"""Edits of `tsuzuki.yaml` that leave everything else in it as it was: comments, order, formatting.

Each edit holds the writers' lock, reads the file again, changes its text, and reads the result back:
it must be valid and say exactly what was meant, or nothing is written. The file is then replaced in
one step. With `dry_run` everything happens but the lock and the writing.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tsuzuki.config.job_patch import Changes, Key, revised
from tsuzuki.config.load import NO_KINDS
from tsuzuki.config.schema.config_file import ConfigFile, parse_job, read_config_file
from tsuzuki.config.schema.job_kinds import JobKind
from tsuzuki.config.schema.problems import InvalidFile, Problem, invalid
from tsuzuki.config.yaml.atomic_write import exclusive, replace_content
from tsuzuki.config.yaml.document import Document, parse_document
from tsuzuki.config.yaml.job_edits import job_added, job_removed, jobs_mapping
from tsuzuki.config.yaml.nodes import Entry
from tsuzuki.config.yaml.source import Source, decode_source, read_bytes
from tsuzuki.config.yaml.text_edits import Splice, Uneditable, same, set_value, spliced
from tsuzuki.model.clock import Clock, SystemClock
from tsuzuki.model.errors import ConfigurationError, Conflict, NotFound
from tsuzuki.model.job import JobSpec
from tsuzuki.model.suggestion import did_you_mean

LOCK_TIMEOUT_SECONDS = 10.0

_SYSTEM_CLOCK = SystemClock()


@dataclass(frozen=True, kw_only=True)
class _Edit:
    """How to change the text, and what the jobs of the file shall be afterwards."""

    splices: list[Splice]
    jobs: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class _Planned:
    """An edit that was tried on the text: what the file would hold, and what that says."""

    text: Source
    valid: ConfigFile
    changes_text: bool


def add_job(
    path: Path,
    name: str,
    body: Mapping[str, Any],
    *,
    kinds: Mapping[str, JobKind] = NO_KINDS,
    clock: Clock = _SYSTEM_CLOCK,
    dry_run: bool = False,
) -> JobSpec:
    """Append a job. Raises `Conflict` if there is one by that name."""
    parse_job(name, body, kinds=kinds)

    def plan(document: Document) -> _Edit:
        jobs = _jobs_data(document)
        if name in jobs:
            raise Conflict(
                f"there already is a job `{name}`",
                hint="Choose another name, or update that job.",
                place=document.place_of_key(("jobs", name)),
                code="job_exists",
            )
        return _Edit(splices=job_added(document, name, body), jobs={**jobs, name: body})

    return _job(_edit(path, plan, kinds=kinds, clock=clock, dry_run=dry_run), name)


def update_job(
    path: Path,
    name: str,
    changes: Changes,
    removals: Collection[Key] = (),
    *,
    kinds: Mapping[str, JobKind] = NO_KINDS,
    clock: Clock = _SYSTEM_CLOCK,
    dry_run: bool = False,
) -> JobSpec:
    """Set the keys in `changes` and take out those in `removals`; what is not there is no fault."""

    def plan(document: Document) -> _Edit:
        body = revised(_body(document, name), changes, removals)
        return _update(document, name, body, kinds)

    return _job(_edit(path, plan, kinds=kinds, clock=clock, dry_run=dry_run), name)


def set_enabled(
    path: Path,
    name: str,
    enabled: bool,
    *,
    kinds: Mapping[str, JobKind] = NO_KINDS,
    clock: Clock = _SYSTEM_CLOCK,
) -> JobSpec:
    """Switch a job on or off. A job that says nothing about it is on."""

    def plan(document: Document) -> _Edit:
        old = _body(document, name)
        changed = {} if old.get("enabled", True) is enabled else {"enabled": enabled}
        return _update(document, name, {**old, **changed}, kinds)

    return _job(_edit(path, plan, kinds=kinds, clock=clock), name)


def remove_job(
    path: Path,
    name: str,
    *,
    kinds: Mapping[str, JobKind] = NO_KINDS,
    clock: Clock = _SYSTEM_CLOCK,
) -> None:
    """Take a job out, with the comments inside it; those above it stay."""

    def plan(document: Document) -> _Edit:
        entry = _existing(document, name)
        jobs = {other: body for other, body in _jobs_data(document).items() if other != name}
        return _Edit(splices=job_removed(document, entry), jobs=jobs)

    _edit(path, plan, kinds=kinds, clock=clock)


def _edit(
    path: Path,
    plan: Callable[[Document], _Edit],
    *,
    kinds: Mapping[str, JobKind],
    clock: Clock,
    dry_run: bool = False,
) -> ConfigFile:
    content = read_bytes(path)  # what does not exist gets no lock file beside it
    if dry_run:
        return _planned(path, content, plan, kinds).valid
    with exclusive(path, clock=clock, timeout_seconds=LOCK_TIMEOUT_SECONDS) as target:
        content = read_bytes(target)
        planned = _planned(path, content, plan, kinds)
        if planned.changes_text:
            replace_content(target, planned.text.encode(), expected=content)
        return planned.valid


def _planned(
    path: Path, content: bytes, plan: Callable[[Document], _Edit], kinds: Mapping[str, JobKind]
) -> _Planned:
    document = parse_document(decode_source(content, file=str(path)))
    try:
        edit = plan(document)
        result = spliced(document.source, edit.splices)
        after = _read_back(document, result, edit.jobs)
    except Uneditable as problem:
        raise ConfigurationError(
            f"this change cannot be made to {path} without touching more: {problem}",
            hint="Nothing was written. Make the change in an editor.",
            code="config_uneditable",
        ) from None
    valid = _validated(document, after, kinds)
    return _Planned(text=result, valid=valid, changes_text=bool(edit.splices))


def _read_back(before: Document, result: Source, jobs: Mapping[str, Any]) -> Document:
    """The edited text as anybody will read it. It must differ in what was meant and nothing else."""
    try:
        after = parse_document(decode_source(result.encode(), file=result.file))
    except ConfigurationError as problem:
        raise Uneditable(problem.message) from problem
    old, new = before.data or {}, after.data or {}
    if not same({**old, "jobs": jobs}, {**new, "jobs": new.get("jobs") or {}}):
        raise Uneditable("parts of the file are shared by anchors or written in an unusual way")
    return after


def _validated(before: Document, after: Document, kinds: Mapping[str, JobKind]) -> ConfigFile:
    try:
        return read_config_file(after, kinds=kinds)
    except InvalidFile:
        # The places in the text that will not be written would lead nowhere: if the fault was
        # there before, tell of it where it stands.
        read_config_file(before, kinds=kinds)
        raise


def _jobs_data(document: Document) -> dict[str, Any]:
    """The jobs as they are written, valid or not."""
    data = {} if document.data is None else document.data
    jobs = (data.get("jobs") or {}) if isinstance(data, dict) else None
    if not isinstance(jobs, dict):
        problem = Problem(path=("jobs",), message="`jobs` must be a mapping of names to jobs")
        raise invalid([problem], document)
    return jobs


def _existing(document: Document, name: str) -> Entry:
    jobs = _jobs_data(document)
    if name not in jobs:
        raise NotFound(
            f"there is no job `{name}` in {document.source.file}",
            hint=did_you_mean(name, jobs) + "List the jobs with `tsuzuki job ls`.",
            code="job_not_found",
        )
    entry = jobs_mapping(document).own(name)
    if entry is None:
        raise Uneditable(f"job `{name}` is taken from another part of the file")
    return entry


def _body(document: Document, name: str) -> dict[str, Any]:
    """The body of an existing job as it is written; one that is none counts as empty."""
    _existing(document, name)
    body = _jobs_data(document)[name]
    return body if isinstance(body, dict) else {}


def _update(
    document: Document, name: str, body: Mapping[str, Any], kinds: Mapping[str, JobKind]
) -> _Edit:
    parse_job(name, body, kinds=kinds)
    splices = set_value(document.source, _existing(document, name), body)
    return _Edit(splices=splices, jobs={**_jobs_data(document), name: body})


def _job(content: ConfigFile, name: str) -> JobSpec:
    return next(job for job in content.jobs if job.name == name)
