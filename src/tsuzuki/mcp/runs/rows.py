"""Rows of a table as an answer within its budget, walked by key: the cursor names the last row that was shown.

Rows that are added or removed meanwhile neither hide nor repeat another. The fullest form in which all rows fit is
taken; if none is, as many rows of the shortest as fit.
"""

import base64
import binascii
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from tsuzuki.mcp.answer import ToolAnswer
from tsuzuki.mcp.paging import foreign_cursor, question_of
from tsuzuki.mcp.tokens import QUARTERS, clipped, printable
from tsuzuki.mcp.tool import ToolCall

Item = TypeVar("Item")

NONE_YET = "No match among the rows searched; the cursor continues the search."


@dataclass(frozen=True, kw_only=True)
class WalkRows(Generic[Item]):
    """Rows from where the cursor stands, in the order of the walk."""

    noun: str
    items: Sequence[Item]
    key: Callable[[Item], str]
    forms: Sequence[Callable[[Item], str]]
    """The fullest first."""

    has_more: bool
    """Whether there are rows behind these."""

    continue_key: str | None = None
    """Where a search goes on that was stopped early, after these rows."""

    total: int | None = None
    """None: not known."""

    is_shown_backwards: bool = False
    empty: str = "Nothing found."


def key_of(call: ToolCall) -> str | None:
    """The key that a call's cursor stands behind; None: at the start."""
    cursor = call.get("cursor")
    if cursor is None:
        return None
    text, _, question = cursor.rpartition("-")
    if question != question_of(call):
        raise foreign_cursor(cursor)
    try:
        return base64.urlsafe_b64decode(text.encode("ascii")).decode("utf-8")
    except (binascii.Error, ValueError):
        raise foreign_cursor(cursor) from None


def number_of(call: ToolCall, *, digits_max: int) -> int | None:
    """The same where keys are numbers, of so many digits that the database can compare them."""
    key = key_of(call)
    if key is None:
        return None
    if not (key.isascii() and key.isdigit() and len(key) <= digits_max):
        raise foreign_cursor(str(call.get("cursor")))
    return int(key)


def rows_answer(call: ToolCall, rows: WalkRows[Item]) -> ToolAnswer:
    """As many rows as fit, in the fullest form in which all fit."""
    if not rows.items:
        empty = NONE_YET if rows.continue_key else rows.empty
        return _made(call, rows, 0, clipped(empty, 2 * call.budget))
    for form in rows.forms:
        answer = _answer(call, rows, form, len(rows.items))
        if answer.fits(call.budget):
            return answer
    form, low, high = rows.forms[-1], 0, len(rows.items) - 1
    while low < high:
        middle = (low + high + 1) // 2
        if _answer(call, rows, form, middle).fits(call.budget):
            low = middle
        else:
            high = middle - 1
    if low:
        return _answer(call, rows, form, low)
    room = QUARTERS * call.budget - _made(call, rows, 1, "").quarters
    return _made(call, rows, 1, clipped(printable(form(rows.items[0])), room))


def _answer(
    call: ToolCall, rows: WalkRows[Item], form: Callable[[Item], str], count: int
) -> ToolAnswer:
    lines = [printable(form(item)) for item in rows.items[:count]]
    return _made(
        call, rows, count, "\n".join(reversed(lines) if rows.is_shown_backwards else lines)
    )


def _made(call: ToolCall, rows: WalkRows[Item], count: int, text: str) -> ToolAnswer:
    has_more = count > 0 and (rows.has_more or count < len(rows.items))
    is_stopped = rows.continue_key is not None and count == len(rows.items)
    key = rows.key(rows.items[count - 1]) if has_more else rows.continue_key
    cursor = _cursor(call, key) if key is not None else None
    total = len(rows.items) + rows.has_more if rows.total is None else rows.total
    is_whole = not rows.has_more and rows.continue_key is None
    is_exact = rows.total is not None or (call.get("cursor") is None and is_whole)
    words = f"{count} of {'' if is_exact else 'at least '}{total} {rows.noun} shown"
    words += "; the search stopped early" if is_stopped else ""
    structured = {"total": total, "shown": count, "cursor": cursor, "text": text}
    return ToolAnswer(
        header=f"{words}; more with cursor={cursor}" if cursor else words,
        text=text,
        structured=structured if is_exact else {"at_least": True, **structured},
    )


def _cursor(call: ToolCall, key: str) -> str:
    text = base64.urlsafe_b64encode(key.encode("utf-8")).decode("ascii")
    return f"{text}-{question_of(call)}"
