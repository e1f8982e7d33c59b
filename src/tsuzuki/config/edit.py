"""Edits of `tsuzuki.yaml` that leave everything else in it as it was: comments, order, formatting.

Each edit holds the writers' lock, reads the file again, changes its text, and reads the result back:
it must be valid and say exactly what was meant, or nothing is written. The file is then replaced in
one step.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tsuzuki.config.atomic import exclusive, replace_content
from tsuzuki.config.document import Document, parse_document
from tsuzuki.config.environment import NO_KINDS
from tsuzuki.config.kinds import JobKind
from tsuzuki.config.nodes import Entry
from tsuzuki.config.nodes import Mapping as MappingNode
from tsuzuki.config.printing import block
from tsuzuki.config.problems import InvalidFile, Problem, invalid
from tsuzuki.config.schema import ConfigFile, parse_job, read_config_file
from tsuzuki.config.source import Source, decode_source, read_bytes
from tsuzuki.config.splice import (
    DEFAULT_STEP,
    Splice,
    Uneditable,
    entry_block_end,
    insert_into_flow,
    insert_lines,
    mapping_block_end,
    remove_keys,
    same,
    set_value,
    spliced,
)
from tsuzuki.model.clock import Clock, SystemClock
from tsuzuki.model.errors import ConfigurationError, Conflict, NotFound
from tsuzuki.model.job import JobSpec
from tsuzuki.model.suggestion import did_you_mean

LOCK_TIMEOUT_SECONDS = 10.0

_SYSTEM_CLOCK = SystemClock()
_BLANK_LINE = re.compile(r"\n[ \t]*\r?\n")


@dataclass(frozen=True, kw_only=True)
class _Edit:
    """How to change the text, and what the jobs of the file shall be afterwards."""

    splices: list[Splice]
    jobs: Mapping[str, Any]


def add_job(
    path: Path,
    name: str,
    body: Mapping[str, Any],
    *,
    kinds: Mapping[str, JobKind] = NO_KINDS,
    clock: Clock = _SYSTEM_CLOCK,
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
        return _Edit(splices=_additions(document, name, body), jobs={**jobs, name: body})

    return _job(_edit(path, plan, kinds=kinds, clock=clock), name)


def update_job(
    path: Path,
    name: str,
    changes: Mapping[str, Any],
    removals: Collection[str] = (),
    *,
    kinds: Mapping[str, JobKind] = NO_KINDS,
    clock: Clock = _SYSTEM_CLOCK,
) -> JobSpec:
    """Set the keys in `changes` and take out those in `removals`; what is not there is no fault."""

    def plan(document: Document) -> _Edit:
        jobs = _jobs_data(document)
        entry = _existing(document, name)
        old = jobs[name] if isinstance(jobs[name], dict) else {}
        kept = {key: value for key, value in old.items() if key not in removals}
        body = {**kept, **changes}
        parse_job(name, body, kinds=kinds)
        return _Edit(splices=set_value(document.source, entry, body), jobs={**jobs, name: body})

    return _job(_edit(path, plan, kinds=kinds, clock=clock), name)


def set_enabled(
    path: Path,
    name: str,
    enabled: bool,  # noqa: FBT001 - the very thing that is said
    *,
    kinds: Mapping[str, JobKind] = NO_KINDS,
    clock: Clock = _SYSTEM_CLOCK,
) -> JobSpec:
    """Switch a job on or off."""
    return update_job(path, name, {"enabled": enabled}, kinds=kinds, clock=clock)


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
        return _Edit(splices=_removal(document, entry), jobs=jobs)

    _edit(path, plan, kinds=kinds, clock=clock)


def _edit(
    path: Path, plan: Callable[[Document], _Edit], *, kinds: Mapping[str, JobKind], clock: Clock
) -> ConfigFile:
    with exclusive(path, clock=clock, timeout_seconds=LOCK_TIMEOUT_SECONDS) as target:
        content = read_bytes(target)
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
        if edit.splices:
            replace_content(target, result.encode(), expected=content)
        return valid


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


def _jobs_entry(document: Document) -> Entry | None:
    return document.root.own("jobs") if isinstance(document.root, MappingNode) else None


def _existing(document: Document, name: str) -> Entry:
    jobs = _jobs_data(document)
    if name not in jobs:
        raise NotFound(
            f"there is no job `{name}` in {document.source.file}",
            hint=did_you_mean(name, jobs) + "List the jobs with `tsuzuki job ls`.",
            code="job_not_found",
        )
    section = _jobs_entry(document)
    mapping = section.value if section else None
    entry = mapping.own(name) if isinstance(mapping, MappingNode) else None
    if entry is None:
        raise Uneditable(f"job `{name}` is taken from another part of the file")
    return entry


def _job(content: ConfigFile, name: str) -> JobSpec:
    return next(job for job in content.jobs if job.name == name)


def _additions(document: Document, name: str, body: Mapping[str, Any]) -> list[Splice]:
    source, section = document.source, _jobs_entry(document)
    if section is None:
        return [_new_section(document, name, body)]
    jobs = section.value
    if isinstance(jobs, MappingNode) and jobs.entries:
        if jobs.is_flow:
            return [insert_into_flow(source, jobs, {name: body})]
        return [_new_block(source, jobs, name, body)]
    on_one_line = source.line_start(jobs.end) == source.line_start(section.key.start)
    if not on_one_line or section.colon_end is None or _is_flow(document):
        return set_value(source, section, {name: body})
    # `jobs:`, `jobs: null`, `jobs: {}`: what stands behind the colon makes way for a block.
    indent = " " * source.column(section.key.start) + DEFAULT_STEP
    new = block(name, body, indent=indent, step=DEFAULT_STEP)
    return [
        Splice(start=section.colon_end, end=jobs.end),
        insert_lines(source, entry_block_end(source, section), new),
    ]


def _new_section(document: Document, name: str, body: Mapping[str, Any]) -> Splice:
    source, root = document.source, document.root
    if isinstance(root, MappingNode) and root.is_flow:
        return insert_into_flow(source, root, {"jobs": {name: body}})
    new = ["jobs:", *block(name, body, indent=DEFAULT_STEP, step=DEFAULT_STEP)]
    if source.text.strip():
        new.insert(0, "")
    if isinstance(root, MappingNode):
        return insert_lines(source, mapping_block_end(source, root), new)
    return insert_lines(source, len(source.text), new)


def _new_block(source: Source, jobs: MappingNode, name: str, body: Mapping[str, Any]) -> Splice:
    indent = " " * source.column(jobs.entries[0].key.start)
    new = block(name, body, indent=indent, step=_step(source, jobs))
    if _is_spaced(source, jobs):
        new.insert(0, "")
    return insert_lines(source, mapping_block_end(source, jobs), new)


def _step(source: Source, jobs: MappingNode) -> str:
    """How much deeper than its name the body of a job is indented in this file."""
    for job in jobs.entries:
        body = job.value
        if isinstance(body, MappingNode) and body.entries and not body.is_flow:
            return " " * (source.column(body.entries[0].key.start) - source.column(job.key.start))
    return DEFAULT_STEP


def _is_spaced(source: Source, jobs: MappingNode) -> bool:
    """Whether a blank line sets the last job off from the one before it; alone, it would be."""
    if len(jobs.entries) < 2:
        return True
    before, last = jobs.entries[-2:]
    return _BLANK_LINE.search(source.text, before.value.end, last.key.start) is not None


def _is_flow(document: Document) -> bool:
    return isinstance(document.root, MappingNode) and document.root.is_flow


def _removal(document: Document, entry: Entry) -> list[Splice]:
    source, section = document.source, _jobs_entry(document)
    mapping = section.value if section else None
    if not isinstance(mapping, MappingNode):
        raise Uneditable("the jobs stand in another part of the file")
    splices = remove_keys(source, mapping, {entry.name})
    return splices if mapping.is_flow else [_closing_ranks(source, splice) for splice in splices]


def _closing_ranks(source: Source, splice: Splice) -> Splice:
    """A removal of lines that leaves one blank line, not two, where there was one on either side."""
    if splice.start == 0:
        return splice
    above = source.line_start(splice.start - 1)
    below_is_blank = not source.text[splice.end : source.line_end(splice.end)].strip()
    if source.line_at(above).strip() or not below_is_blank:
        return splice
    return Splice(start=above, end=splice.end)
