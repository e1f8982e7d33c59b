"""Text from outside, without harm to the terminal or the page that shows it.

What could move a cursor, forge a line or turn the reading direction becomes a visible escape.
"""

import re

HARMFUL = re.compile(
    "["
    "\x00-\x1f\x7f-\x9f"  # control characters, the eight-bit ones too: they start escape sequences
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # direction marks: text reads as another text
    "\u2028\u2029"  # line and paragraph separators
    "\ud800-\udfff"  # halves of a surrogate pair: no encoding accepts them
    "]"
)
_FORMULA_STARTS = ("=", "+", "-", "@")
_NAMED_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def neutralise(text: str) -> str:
    """The same text with every harmful character as a visible escape; the result is one line."""
    return HARMFUL.sub(_visible_escape, text)


def csv_cell(value: object) -> object:
    """The value for a CSV file that a spreadsheet may open: text that it would take for a formula gets an
    apostrophe before it, and a control character is a visible escape."""
    if not isinstance(value, str):
        return value
    harmless = neutralise(value)
    return f"'{harmless}" if harmless.startswith(_FORMULA_STARTS) else harmless


def _visible_escape(match: re.Match[str]) -> str:
    character = match[0]
    code = ord(character)
    return _NAMED_ESCAPES.get(character) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")
