"""Where in the text of a file a job comes and goes, and how it is set out there."""

import re
from collections.abc import Mapping
from typing import Any

from tsuzuki.config.yaml.document import Document
from tsuzuki.config.yaml.emitter import block
from tsuzuki.config.yaml.nodes import Entry
from tsuzuki.config.yaml.nodes import Mapping as MappingNode
from tsuzuki.config.yaml.source import Source
from tsuzuki.config.yaml.text_edits import (
    DEFAULT_STEP,
    Splice,
    Uneditable,
    entry_block_end,
    insert_into_flow,
    insert_lines,
    mapping_block_end,
    remove_keys,
    set_value,
)

_BLANK_LINE = re.compile(r"\n[ \t]*\r?\n")


def job_added(document: Document, name: str, body: Mapping[str, Any]) -> list[Splice]:
    """Put a job behind the last one, in the manner of the others."""
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
    position = entry_block_end(source, section)
    if position > source.line_end(jobs.end):  # comments stand under `jobs:`
        new.insert(0, "")
    return [
        Splice(start=section.colon_end, end=jobs.end),
        insert_lines(source, position, new),
    ]


def job_removed(document: Document, entry: Entry) -> list[Splice]:
    """Take the job `entry` out, and the blank line that set it off."""
    mapping = jobs_mapping(document)
    splices = remove_keys(document.source, mapping, {entry.name})
    if mapping.is_flow:
        return splices
    return [_closing_ranks(document.source, splice) for splice in splices]


def jobs_mapping(document: Document) -> MappingNode:
    """The mapping that is written under `jobs:`."""
    section = _jobs_entry(document)
    mapping = section.value if section else None
    if not isinstance(mapping, MappingNode):
        raise Uneditable("the jobs are taken from another part of the file")
    return mapping


def _jobs_entry(document: Document) -> Entry | None:
    return document.root.own("jobs") if isinstance(document.root, MappingNode) else None


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


def _closing_ranks(source: Source, splice: Splice) -> Splice:
    """A removal of lines that leaves one blank line, not two, where there was one on either side."""
    if splice.start == 0:
        return splice
    above = source.line_start(splice.start - 1)
    below_is_blank = not source.text[splice.end : source.line_end(splice.end)].strip()
    if source.line_at(above).strip() or not below_is_blank:
        return splice
    return Splice(start=above, end=splice.end)
