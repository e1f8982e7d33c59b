"""The tags of a document, seen in one pass: what its root is, where its whole entries end, how deep it goes.

Comments, CDATA and processing instructions hold no tags. The pass takes time in proportion to the document, a hostile
one too, and needs no well-formed one.
"""

import re
from dataclasses import dataclass

_TAG = re.compile(
    rb"<(/?)((?:[\w.-]+:)?([A-Za-z_][\w.-]*))((?:[^<>\"']++|\"[^\"<]*+\"|'[^'<]*+')*+)>"
)
_LOOSE_TAG = re.compile(rb"<(/?)((?:[\w.-]+:)?([A-Za-z_][\w.-]*))([^<>]*+)>")
_ENTRIES = frozenset({b"item", b"entry"})
_SPANS = ((b"<!--", b"-->"), (b"<![CDATA[", b"]]>"), (b"<?", b"?>"))


@dataclass(kw_only=True)
class Structure:
    """`root` is the name of the first tag as it is written, `root_name` without its prefix and in lower case."""

    root: bytes = b""
    root_name: bytes = b""
    is_closed: bool = False
    """Whether the root has its end."""

    entries: int = 0
    is_entry_open: bool = False
    """Whether the document ends inside an entry."""

    whole_end: int = 0
    """Where the last whole entry ends; 0 if there is none."""

    is_channel_open: bool = False
    """Whether a channel was open there."""

    depth_max: int = 0
    attributes_max: int = 0


def structure_of(body: bytes) -> Structure:
    """Look at the tags of a document in UTF-8."""
    scan = _Scan()
    position = 0
    while (position := body.find(b"<", position)) >= 0:
        span_end = _end_of_span(body, position)
        if span_end is not None:
            position = span_end
            continue
        tag = _TAG.match(body, position) or _LOOSE_TAG.match(body, position)
        if tag is not None:
            scan.add(tag)
        position = tag.end() if tag else position + 1
    found = scan.found
    # A comment or CDATA that is left open hides the end, which is there all the same.
    root_end = b"</" + found.root + b">"
    found.is_closed = found.is_closed or bool(found.root and body.rstrip().endswith(root_end))
    return found


class _Scan:
    def __init__(self) -> None:
        self.found = Structure()
        self._depth = 0
        self._entry_depth = 0
        self._is_channel_open = False

    def add(self, tag: re.Match[bytes]) -> None:
        found = self.found
        name, is_end = tag[3].lower(), bool(tag[1])
        if not found.root:
            found.root, found.root_name = tag[2], name
        found.attributes_max = max(found.attributes_max, tag[4].count(b"="))
        if tag[4].endswith(b"/"):
            return
        self._depth += -1 if is_end else 1
        found.depth_max = max(found.depth_max, self._depth)
        if name == found.root_name:
            found.is_closed = is_end
        if name == b"channel":
            self._is_channel_open = not is_end
        elif name in _ENTRIES:
            self._add_entry_tag(tag.end(), is_end=is_end)

    def _add_entry_tag(self, position: int, *, is_end: bool) -> None:
        found = self.found
        if is_end:
            # Tags that were left open end with their entry.
            self._depth = self._entry_depth
            found.whole_end, found.is_channel_open = position, self._is_channel_open
        else:
            self._entry_depth = self._entry_depth if found.is_entry_open else self._depth - 1
            found.entries += 1
        found.is_entry_open = not is_end


def _end_of_span(body: bytes, position: int) -> int | None:
    """Where a comment and the like ends, which begins here: at the end of the document if it is left open."""
    for start, end in _SPANS:
        if body.startswith(start, position):
            found = body.find(end, position + len(start))
            return len(body) if found < 0 else found + len(end)
    return None
