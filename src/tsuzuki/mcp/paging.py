"""A list of things as an answer within its budget: a ladder of shorter forms, then pages.

The fullest form in which the whole page fits is taken. If the shortest does not fit either, as much of it as fits is
shown, the rest is counted by folder, and the cursor continues behind it: following cursors shows each thing once.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, Self, TypeVar

from tsuzuki.mcp.answer import ToolAnswer
from tsuzuki.mcp.tokens import QUARTERS, clipped, compact_json, printable
from tsuzuki.mcp.tool import ToolCall
from tsuzuki.model.errors import UsageError

HASH_LENGTH = 6
COUNTED_FOLDERS_MAX = 12
COUNTS_QUARTERS_MAX = 240
COUNTS_QUARTERS_MIN = 60
_CURSOR = re.compile(rf"([0-9a-f]{{1,8}})-([0-9a-f]{{{HASH_LENGTH}}})-([0-9a-f]{{{HASH_LENGTH}}})")


class Listed(Protocol):
    """A thing in a list: it lies in a file, and is known again by its key."""

    @property
    def path(self) -> str: ...

    @property
    def key(self) -> str: ...


Item = TypeVar("Item", bound=Listed)


@dataclass(frozen=True)
class ItemForm(Generic[Item]):
    """One way to show things."""

    name: str
    render: Callable[[Sequence[Item]], str]


@dataclass(frozen=True, kw_only=True)
class McpCursor:
    """Where the next page starts: behind the thing at `offset - 1`, which is known again by its hash."""

    offset: int = 0
    question: str = ""
    last: str = ""

    @classmethod
    def of(cls, call: ToolCall) -> Self:
        """The cursor of a call; at the start if it has none. That of another question is refused."""
        text = call.get("cursor")
        if text is None:
            return cls(question=question_of(call))
        found = _CURSOR.fullmatch(text)
        if found is None or found[2] != question_of(call):
            raise foreign_cursor(text)
        return cls(offset=int(found[1], 16), question=found[2], last=found[3])

    def start_in(self, items: Sequence[Listed]) -> int:
        """Where the page starts. Things that came or went before it since the last page move it."""
        same = [
            number
            for number, item in enumerate(items, 1)
            if self.offset and short_hash(item.key) == self.last
        ]
        if same:
            return min(same, key=lambda number: abs(number - self.offset))
        return min(self.offset, len(items))

    def behind(self, offset: int, item: Listed) -> str:
        return f"{offset:x}-{self.question}-{short_hash(item.key)}"


def foreign_cursor(text: str) -> UsageError:
    return UsageError(
        f"the cursor {text[:40]!r} belongs to another call",
        hint="Repeat the call that returned it, with the same arguments and this cursor, or "
        "leave the cursor out to start over.",
        code="bad_cursor",
    )


def question_of(call: ToolCall) -> str:
    """What the question is, on every page and with any budget."""
    told = {key: call.arguments[key] for key in sorted(call.arguments)}
    told = {key: value for key, value in told.items() if key not in ("cursor", "budget")}
    return short_hash(call.tool.name + compact_json(told))


def short_hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:HASH_LENGTH]


@dataclass(frozen=True, kw_only=True)
class McpPage(Generic[Item]):
    """What an answer is made from. `items` are known from the first of all on, as far as they are needed."""

    index: Mapping[str, Any]
    items: Sequence[Item]
    forms: Sequence[ItemForm[Item]]
    total: int
    is_total_exact: bool = True
    size: int | None = None
    """How many a page may have at most, with any budget."""

    ends: Sequence[int] = ()
    """Where a page ends, if not anywhere."""

    notes: Sequence[str] = field(default_factory=list)
    """Sentences above the things of the first page. At most a quarter of the budget is for them."""

    counted: Callable[[Sequence[Item]], str] = field(default_factory=lambda: counted)
    """What is said of those that are not shown any more."""

    empty: str = "Nothing found."


def page_answer(call: ToolCall, page: McpPage[Item]) -> ToolAnswer:
    """The next page, in the fullest form that fits."""
    cursor = McpCursor.of(call)
    start = cursor.start_in(page.items)
    end = min((one for one in page.ends if one > start), default=len(page.items))
    shown = page.items[start : min(end, start + (page.size or call.budget))]
    notes = clipped("\n".join(page.notes), call.budget) if start == 0 else ""
    draft = _Draft(page, cursor, start, shown, notes)
    if not shown:
        return draft.empty(call.budget)
    for form in page.forms:
        answer = draft.answer(form, len(shown))
        if answer.fits(call.budget):
            return answer
    return draft.cut(page.forms[-1], call.budget)


class _Draft(Generic[Item]):
    """Tries answers to one call."""

    def __init__(
        self, page: McpPage[Item], cursor: McpCursor, start: int, shown: Sequence[Item], notes: str
    ) -> None:
        self._notes = notes
        self._page = page
        self._cursor = cursor
        self._start = start
        self._shown = shown

    def answer(self, form: ItemForm[Item], count: int, counts: str = "") -> ToolAnswer:
        """The first `count` of the page in a form."""
        return self._made(form.name, count, form.render(self._shown[:count]), counts)

    def empty(self, budget: int) -> ToolAnswer:
        words = self._page.empty if self._start == 0 else "No more results."
        return self._made("full", 0, clipped(words, 2 * budget))

    def cut(self, form: ItemForm[Item], budget: int) -> ToolAnswer:
        """As many as fit; the rest is counted. One is always shown, cut short if it must be."""
        room = QUARTERS * budget
        reserved = min(COUNTS_QUARTERS_MAX, room // 8)
        low, high = 0, len(self._shown) - 1
        while low < high:
            middle = (low + high + 1) // 2
            if self.answer(form, middle).quarters <= room - reserved:
                low = middle
            else:
                high = middle - 1
        if low == 0:
            around = self._made(form.name, 1, "").quarters
            return self._made(form.name, 1, clipped(form.render(self._shown[:1]), room - around))
        answer = self.answer(form, low)
        left = room - answer.quarters - 2
        rest = self._page.items[self._start + low :]
        counts = clipped(self._page.counted(rest), left)
        return self.answer(form, low, counts) if left >= COUNTS_QUARTERS_MIN else answer

    def _made(self, form: str, count: int, rendered: str, counts: str = "") -> ToolAnswer:
        behind = self._start + count
        has_more = behind < self._page.total or not self._page.is_total_exact
        cursor = self._cursor.behind(behind, self._shown[count - 1]) if has_more and count else None
        text = "\n".join(part for part in (self._notes, rendered, counts) if part)
        total, index = max(self._page.total, behind), self._page.index
        structured = {"index": index, "total": total, "shown": count, "form": form}
        if not self._page.is_total_exact:
            structured["at_least"] = True
        text = printable(text)
        return ToolAnswer(
            header=self._header(form, count, total, cursor),
            text=text,
            structured={**structured, "cursor": cursor, "text": text},
        )

    def _header(self, form: str, count: int, total: int, cursor: str | None) -> str:
        at_least = "" if self._page.is_total_exact else "at least "
        words = [index_words(self._page.index), f"{count} of {at_least}{total} shown"]
        if form != "full":
            words.append(f"form: {form}")
        if cursor is not None:
            words.append(f"more with cursor={cursor}")
        return "; ".join(words)


def index_words(index: Mapping[str, Any]) -> str:
    """`index ready at …, head …`."""
    percent = index.get("percent")
    words = [f"index {index['state']}{f' {percent} %' if percent is not None else ''}"]
    if index.get("at"):
        words[0] += f" at {index['at']}"
    if index.get("head"):
        words.append(f"head {index['head']}")
    if index.get("pending"):
        words.append(f"{index['pending']} changed files pending")
    if index.get("unlisted_folders"):
        words.append(f"git does not list the files of {', '.join(index['unlisted_folders'])}")
    if index.get("reread"):
        words.append(f"{index['reread']} reread")
    return ", ".join(words)


def counted(rest: Sequence[Listed]) -> str:
    """`Not shown: src/app 120, tests 80.`"""
    folders = Counter("/".join(one.path.split("/")[:-1][:2]) or "." for one in rest)
    most = folders.most_common(COUNTED_FOLDERS_MAX)
    if not most:
        return ""
    others = sum(folders.values()) - sum(count for _, count in most)
    more = f", elsewhere {others}" if others else ""
    return f"Not shown: {', '.join(f'{folder} {count}' for folder, count in most)}{more}."
