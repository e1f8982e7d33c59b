"""Text edits that insert a job into the file or delete one, in the layout of the other jobs."""

import re
from collections.abc import Mapping
from typing import Any

from tsuzuki.config.yaml.document import YamlDocument
from tsuzuki.config.yaml.emitter import emit_block
from tsuzuki.config.yaml.nodes import Mapping as MappingNode
from tsuzuki.config.yaml.nodes import MappingEntry
from tsuzuki.config.yaml.source import YamlSource
from tsuzuki.config.yaml.text_edits import (
    INDENT_STEP,
    TextEdit,
    Uneditable,
    entry_block_end,
    insert_into_flow,
    insert_lines,
    mapping_block_end,
    remove_keys,
    set_value,
)

_BLANK_LINE = re.compile(r"\n[ \t]*\r?\n")


def insert_job(document: YamlDocument, name: str, body: Mapping[str, Any]) -> list[TextEdit]:
    """Insert a job after the last one, in the layout of the others."""
    source, section = document.source, _jobs_entry(document)
    if section is None:
        return [_insert_jobs_key(document, name, body)]
    jobs = section.value
    if isinstance(jobs, MappingNode) and jobs.entries:
        if jobs.is_flow:
            return [insert_into_flow(source, jobs, {name: body})]
        return [_append_block(source, jobs, name, body)]
    is_one_line = source.line_start(jobs.end) == source.line_start(section.key.start)
    is_flow = isinstance(document.root, MappingNode) and document.root.is_flow
    if not is_one_line or section.colon_end is None or is_flow:
        return set_value(source, section, {name: body})
    # `jobs:`, `jobs: null`, `jobs: {}`: a block replaces the text after the colon.
    indent = " " * source.column(section.key.start) + INDENT_STEP
    lines = emit_block(name, body, indent=indent, step=INDENT_STEP)
    position = entry_block_end(source, section)
    if position > source.line_end(jobs.end):  # there are comments under `jobs:`
        lines.insert(0, "")
    return [
        TextEdit(start=section.colon_end, end=jobs.end),
        insert_lines(source, position, lines),
    ]


def delete_job(document: YamlDocument, entry: MappingEntry) -> list[TextEdit]:
    """Delete the job `entry`, and one of the two blank lines around it."""
    mapping = jobs_mapping(document)
    edits = remove_keys(document.source, mapping, {entry.name})
    if mapping.is_flow:
        return edits
    return [_with_blank_line_above(document.source, edit) for edit in edits]


def jobs_mapping(document: YamlDocument) -> MappingNode:
    """The mapping under `jobs:`. Raises `Uneditable` if it is an alias or merged."""
    section = _jobs_entry(document)
    mapping = section.value if section else None
    if not isinstance(mapping, MappingNode):
        raise Uneditable("the jobs are defined in another part of the file")
    return mapping


def _jobs_entry(document: YamlDocument) -> MappingEntry | None:
    return document.root.own_entry("jobs") if isinstance(document.root, MappingNode) else None


def _insert_jobs_key(document: YamlDocument, name: str, body: Mapping[str, Any]) -> TextEdit:
    source, root = document.source, document.root
    if isinstance(root, MappingNode) and root.is_flow:
        return insert_into_flow(source, root, {"jobs": {name: body}})
    lines = ["jobs:", *emit_block(name, body, indent=INDENT_STEP, step=INDENT_STEP)]
    if source.text.strip():
        lines.insert(0, "")
    end = mapping_block_end(source, root) if isinstance(root, MappingNode) else len(source.text)
    return insert_lines(source, end, lines)


def _append_block(
    source: YamlSource, jobs: MappingNode, name: str, body: Mapping[str, Any]
) -> TextEdit:
    indent = " " * source.column(jobs.entries[0].key.start)
    lines = emit_block(name, body, indent=indent, step=_indent_step(source, jobs))
    if _has_blank_lines_between(source, jobs):
        lines.insert(0, "")
    return insert_lines(source, mapping_block_end(source, jobs), lines)


def _indent_step(source: YamlSource, jobs: MappingNode) -> str:
    """How much deeper than its name the body of a job is indented in this file."""
    for job in jobs.entries:
        body = job.value
        if isinstance(body, MappingNode) and body.entries and not body.is_flow:
            return " " * (source.column(body.entries[0].key.start) - source.column(job.key.start))
    return INDENT_STEP


def _has_blank_lines_between(source: YamlSource, jobs: MappingNode) -> bool:
    """Whether a blank line separates the last two jobs. With one job: yes, by default."""
    if len(jobs.entries) < 2:
        return True
    before, last = jobs.entries[-2:]
    return _BLANK_LINE.search(source.text, before.value.end, last.key.start) is not None


def _with_blank_line_above(source: YamlSource, deletion: TextEdit) -> TextEdit:
    """Extend a deletion by the blank line above it if one follows too, so that one is left."""
    above = source.line_start(deletion.start - 1)
    below_is_blank = not source.text[deletion.end : source.line_end(deletion.end)].strip()
    if source.line_at(above).strip() or not below_is_blank:
        return deletion
    return TextEdit(start=above, end=deletion.end)
