"""The budget holds whatever the things are, and following cursors shows each of them once."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from tsuzuki.collectors.codeindex.tools.definitions import SEARCH
from tsuzuki.mcp.answer import ToolAnswer
from tsuzuki.mcp.paging import ItemForm, McpPage, page_answer
from tsuzuki.mcp.tokens import clipped, compact_json, escaped_quarters, quarters, tokens
from tsuzuki.mcp.tool import ServerState, ToolCall

INDEX = {
    "state": "ready",
    "at": "2026-11-17T12:00:00.000Z",
    "head": "0" * 12,
    "pending": 0,
    "reread": 0,
}
STATE = ServerState(environ={}, cwd=None)  # type: ignore[arg-type]  # no tree is asked about


@dataclass(frozen=True)
class Thing:
    number: int
    path: str
    text: str

    @property
    def key(self) -> str:
        return f"{self.path}{self.text}{self.number}"


def forms(width: int) -> list[ItemForm[Thing]]:
    def full(shown: Sequence[Thing]) -> str:
        return "\n".join(f"<{one.number}> {clipped(one.path + one.text, width)}" for one in shown)

    def short(shown: Sequence[Thing]) -> str:
        return " ".join(f"<{one.number}>" for one in shown)

    return [ItemForm("full", full), ItemForm("names by file", short)]


def answer(
    things: Sequence[Thing], budget: int, cursor: str | None, size: int | None
) -> ToolAnswer:
    arguments = {"query": "a", "budget": budget, **({"cursor": cursor} if cursor else {})}
    page = McpPage(index=INDEX, items=things, forms=forms(budget), total=len(things), size=size)
    return page_answer(ToolCall(tool=SEARCH, arguments=arguments, state=STATE), page)


def walk(things: Sequence[Thing], budget: int, size: int | None) -> list[ToolAnswer]:
    answers, cursor = [], None
    while True:
        answers.append(answer(things, budget, cursor, size))
        cursor = answers[-1].structured["cursor"]
        if cursor is None:
            return answers


texts = st.text(st.characters(exclude_categories=()), max_size=400)
things_drawn = st.lists(st.tuples(texts, texts), max_size=120).map(
    lambda drawn: [Thing(number, path, text) for number, (path, text) in enumerate(drawn)]
)


@settings(max_examples=60)
@given(things_drawn, st.integers(200, 12_000), st.none() | st.integers(1, 40))
def test_no_answer_is_over_its_budget_and_the_walk_shows_everything_once(
    things: list[Thing], budget: int, size: int | None
) -> None:
    answers = walk(things, budget, size)
    numbers = [
        int(found) for one in answers for found in re.findall(r"(?:^| )<(\d+)>", one.text, re.M)
    ]
    assert sum(one.structured["shown"] for one in answers) == len(things)
    assert {*range(len(things))} <= {*numbers}
    for one in answers:
        assert one.structured["text"] == one.text
        assert tokens(one.content) <= budget
        assert tokens(compact_json(one.structured)) <= budget


@settings(max_examples=100)
@given(texts, st.integers(3, 500))
def test_a_clipped_text_fits_and_is_a_start_of_it(text: str, room: int) -> None:
    short = clipped(text, room)
    assert escaped_quarters(short) <= room
    assert short == text or text.startswith(short.removesuffix("..."))


def test_tokens_are_counted_as_ascii_quarters_and_others_whole() -> None:
    assert tokens("abcd" * 10) == 10
    assert tokens("続き") == 2
    assert quarters("a続") == 5


def test_a_thing_that_was_removed_between_two_pages_hides_no_other() -> None:
    things = [Thing(number, f"src/{number}.py", "") for number in range(60)]
    first = answer(things, 200, None, 10)
    cursor = first.structured["cursor"]
    second = answer(things[3:], 200, cursor, 10)
    assert second.text.startswith("<10>")


def test_a_thing_that_came_between_two_pages_repeats_none() -> None:
    things = [Thing(number, f"src/{number}.py", "") for number in range(60)]
    cursor = answer(things, 200, None, 10).structured["cursor"]
    second = answer([Thing(99, "a.py", ""), *things], 200, cursor, 10)
    assert second.text.startswith("<10>")
