"""Sections of a Markdown file: a heading reaches to the next one of its own or a higher level.

The grammar gives sections to `#` headings only; with underlined ones beside them its sections are wrong.
"""

from collections.abc import Iterable

from tsuzuki.collectors.codeindex.extract.nesting import FoundDefinition


def as_sections(text: bytes, headings: Iterable[FoundDefinition]) -> list[FoundDefinition]:
    ordered = sorted(headings, key=lambda heading: heading.start)
    sections: list[FoundDefinition] = []
    enclosing: list[tuple[int, int]] = []
    ends = [len(text)] * len(ordered)
    for number, heading in enumerate(ordered):
        level = _level(text, heading)
        while enclosing and enclosing[-1][0] >= level:
            ends[enclosing.pop()[1]] = heading.start
        enclosing.append((level, number))
    for heading, end in zip(ordered, ends, strict=True):
        trimmed = heading.start + len(text[heading.start : end].rstrip())
        sections.append(heading._replace(end=trimmed))
    return sections


def _level(text: bytes, heading: FoundDefinition) -> int:
    written = text[heading.start : heading.end].strip()
    marks = len(written) - len(written.lstrip(b"#"))
    return marks or (1 if written.endswith(b"=") else 2)
