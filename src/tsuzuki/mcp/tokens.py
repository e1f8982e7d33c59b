"""How many tokens a text has: ASCII characters / 4 + other characters.

Counted in quarters of a token, so that the parts of a text add up to the whole. A text is counted as it stands in
JSON: that is the longer of the two ways in which a client may show it.
"""

import json
from typing import Any

QUARTERS = 4
CUT = "..."
"""Stands for what was cut off a text."""


def compact_json(value: Any) -> str:
    """As it is sent."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def quarters(text: str) -> int:
    """Quarters of a token."""
    others = len(text) - len(text.encode("ascii", "ignore"))
    return len(text) + (QUARTERS - 1) * others


def tokens(text: str) -> int:
    return -(-quarters(text) // QUARTERS)


def escaped_quarters(text: str) -> int:
    """Of the text inside a JSON string, without its quotes."""
    return quarters(compact_json(text)) - 2


def printable(text: str) -> str:
    """Text that can be sent: bytes of a path that are not UTF-8 are escaped."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def clipped(text: str, quarters_max: int) -> str:
    """The text, or as much of its start as fits with a mark behind it."""
    # Most lines are short: a character costs at least one quarter, and in JSON six at most.
    if 6 * len(text) <= quarters_max or escaped_quarters(text) <= quarters_max:
        return text
    low, high = 0, min(len(text), quarters_max)
    while low < high:
        middle = (low + high + 1) // 2
        if escaped_quarters(text[:middle]) + len(CUT) <= quarters_max:
            low = middle
        else:
            high = middle - 1
    return text[:low] + CUT
