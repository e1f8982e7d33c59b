"""Edit the jobs of `tsuzuki.yaml` without changing anything else in it: comments, order, formatting.

Each edit takes the write lock, reads the file, changes its text, and parses the result. The result
must be valid and differ in exactly what was meant, or nothing is written. Then the file is replaced
atomically. With `dry_run` everything happens except locking and writing.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tsuzuki.config.job_patch import Changes, Key, patched
from tsuzuki.config.schema.config_file import ConfigFile, read_config_file
from tsuzuki.config.schema.job_kinds import NO_KINDS, JobKind
from tsuzuki.config.schema.jobs import parse_job
from tsuzuki.config.schema.problems import ConfigProblem, InvalidFile, invalid
from tsuzuki.config.yaml.atomic_write import replace_content, write_lock
from tsuzuki.config.yaml.document import YamlDocument, parse_document
from tsuzuki.config.yaml.job_edits import delete_job, insert_job, jobs_mapping
from tsuzuki.config.yaml.nodes import MappingEntry
from tsuzuki.config.yaml.source import decode_source, read_bytes
from tsuzuki.config.yaml.text_edits import TextEdit, Uneditable, apply_edits, same_json, set_value
from tsuzuki.model.clock import Clock, SystemClock
from tsuzuki.model.errors import ConfigurationError, Conflict, NotFound
from tsuzuki.model.job import JobSpec
from tsuzuki.model.suggestion import did_you_mean

LOCK_TIMEOUT_SECONDS = 10.0

_SYSTEM_CLOCK = SystemClock()


@dataclass(frozen=True, kw_only=True)
class _Edit:
    """The edits of the text, and the data that `jobs` must have afterwards."""

    text_edits: list[TextEdit]
    jobs: Mapping[str, Any]


class ConfigEditor:
    """Edits the jobs of the file at `path`. `kinds` are the kinds of job that may be in it."""

    def __init__(
        self,
        path: Path,
        *,
        kinds: Mapping[str, JobKind] = NO_KINDS,
        clock: Clock = _SYSTEM_CLOCK,
    ) -> None:
        self._path = path
        self._kinds = kinds
        self._clock = clock

    def add_job(self, name: str, body: Mapping[str, Any], *, dry_run: bool = False) -> JobSpec:
        """Append a job. Raises `Conflict` if there is one with that name."""
        parse_job(name, body, kinds=self._kinds)

        def plan(document: YamlDocument) -> _Edit:
            jobs = _jobs_data(document)
            if name in jobs:
                raise Conflict(
                    f"a job named `{name}` already exists",
                    hint="Choose another name, or change that job with: tsuzuki job update",
                    place=document.place_of_key(("jobs", name)),
                    code="job_exists",
                )
            return _Edit(text_edits=insert_job(document, name, body), jobs={**jobs, name: body})

        return _job(self._edit(plan, dry_run=dry_run), name)

    def update_job(
        self,
        name: str,
        changes: Changes,
        removals: Collection[Key] = (),
        *,
        dry_run: bool = False,
    ) -> JobSpec:
        """Set the keys in `changes` and remove those in `removals`; a missing one is no error."""

        def plan(document: YamlDocument) -> _Edit:
            entry, old = _find_job(document, name)
            return _replace_body(document, entry, patched(old, changes, removals), self._kinds)

        return _job(self._edit(plan, dry_run=dry_run), name)

    def set_enabled(self, name: str, enabled: bool) -> JobSpec:
        """Enable or disable a job. Without the key `enabled` it is enabled."""

        def plan(document: YamlDocument) -> _Edit:
            entry, old = _find_job(document, name)
            changed = {} if old.get("enabled", True) is enabled else {"enabled": enabled}
            return _replace_body(document, entry, {**old, **changed}, self._kinds)

        return _job(self._edit(plan), name)

    def remove_job(self, name: str) -> None:
        """Remove a job and the comments inside it. Comments above it stay."""

        def plan(document: YamlDocument) -> _Edit:
            entry, _ = _find_job(document, name)
            jobs = {other: body for other, body in _jobs_data(document).items() if other != name}
            return _Edit(text_edits=delete_job(document, entry), jobs=jobs)

        self._edit(plan)

    def _edit(self, plan: Callable[[YamlDocument], _Edit], *, dry_run: bool = False) -> ConfigFile:
        path = self._path
        content = read_bytes(path)  # before locking: a missing file gets no lock file beside it
        if dry_run:
            return _edited(path, content, plan, self._kinds)
        lock = write_lock(path, clock=self._clock, timeout_seconds=LOCK_TIMEOUT_SECONDS)
        with lock as target:
            content = read_bytes(target)
            result = _edited(path, content, plan, self._kinds)
            new_content = result.document.source.encode()
            if new_content != content:
                replace_content(target, new_content, expected=content)
            return result


def _edited(
    path: Path, content: bytes, plan: Callable[[YamlDocument], _Edit], kinds: Mapping[str, JobKind]
) -> ConfigFile:
    """The file that `plan` makes of `content`, validated but not written."""
    before = parse_document(decode_source(content, file=str(path)))
    try:
        after = _apply(before, plan(before))
    except Uneditable as problem:
        raise ConfigurationError(
            f"{path} cannot be changed like this without changing more: {problem}",
            hint="Nothing was written. Make the change in an editor.",
            code="config_uneditable",
        ) from None
    try:
        return read_config_file(after, kinds=kinds)
    except InvalidFile:
        # A place in the text that is not written would mislead. If the file was invalid before the
        # edit, report that, at its place.
        read_config_file(before, kinds=kinds)
        raise


def _apply(before: YamlDocument, edit: _Edit) -> YamlDocument:
    """Apply the text edits and parse the result. Only the `jobs` of the edit may differ."""
    result = apply_edits(before.source, edit.text_edits)
    try:
        after = parse_document(decode_source(result.encode(), file=result.file))
    except ConfigurationError as problem:
        raise Uneditable(problem.message) from problem
    old, new = before.data or {}, after.data or {}
    if not same_json({**old, "jobs": edit.jobs}, {**new, "jobs": new.get("jobs") or {}}):
        raise Uneditable("parts of the file are shared by anchors or written in an unusual way")
    return after


def _jobs_data(document: YamlDocument) -> dict[str, Any]:
    """The jobs as they are written, valid or not."""
    data = {} if document.data is None else document.data
    jobs = (data.get("jobs") or {}) if isinstance(data, dict) else None
    if not isinstance(jobs, dict):
        problem = ConfigProblem(path=("jobs",), message="`jobs` must be a mapping of names to jobs")
        raise invalid([problem], document)
    return jobs


def _find_job(document: YamlDocument, name: str) -> tuple[MappingEntry, dict[str, Any]]:
    """The entry and the body of a job. A body that is not a mapping counts as empty."""
    jobs = _jobs_data(document)
    if name not in jobs:
        raise NotFound(
            f"there is no job `{name}` in {document.source.file}",
            hint=did_you_mean(name, jobs) + "List the jobs with `tsuzuki job ls`.",
            code="job_not_found",
        )
    entry = jobs_mapping(document).own_entry(name)
    if entry is None:
        raise Uneditable(f"job `{name}` is defined in another part of the file")
    body = jobs[name]
    return entry, body if isinstance(body, dict) else {}


def _replace_body(
    document: YamlDocument,
    entry: MappingEntry,
    body: Mapping[str, Any],
    kinds: Mapping[str, JobKind],
) -> _Edit:
    parse_job(entry.name, body, kinds=kinds)
    text_edits = set_value(document.source, entry, body)
    return _Edit(text_edits=text_edits, jobs={**_jobs_data(document), entry.name: body})


def _job(content: ConfigFile, name: str) -> JobSpec:
    return next(job for job in content.jobs if job.name == name)
