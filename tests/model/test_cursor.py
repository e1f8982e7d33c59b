"""Where a paged collection goes on, and what ends it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsuzuki.model.cursor import Cursor, StopReason, advance, exhaust
from tsuzuki.model.errors import Conflict

THEN = datetime(2026, 3, 4, tzinfo=UTC)
NOW = THEN + timedelta(hours=1)
FRESH = Cursor(job_name="books", key="ab12", updated_at=THEN)


def test_a_page_moves_the_cursor_by_what_it_held() -> None:
    assert advance(FRESH, returned=40, now=NOW) == replace(FRESH, start_index=40, updated_at=NOW)


def test_a_good_empty_answer_exhausts_where_the_cursor_stands() -> None:
    at_150 = replace(FRESH, start_index=150)
    ended = advance(at_150, returned=0, now=NOW)
    assert ended == replace(at_150, is_exhausted=True, updated_at=NOW)


def test_a_collection_with_nothing_in_it_is_exhausted_at_zero() -> None:
    ended = advance(FRESH, returned=0, now=NOW)
    assert (ended.start_index, ended.is_exhausted) == (0, True)


def test_a_confirmed_total_exhausts_after_the_last_page() -> None:
    ended = exhaust(advance(FRESH, returned=40, now=NOW), NOW)
    assert (ended.start_index, ended.is_exhausted) == (40, True)
    assert exhaust(ended, NOW) == ended


def test_an_exhausted_cursor_does_not_move() -> None:
    with pytest.raises(Conflict, match="exhausted at 0"):
        advance(exhaust(FRESH, NOW), returned=1, now=NOW)


@given(st.lists(st.integers(1, 40)))
def test_the_cursor_never_moves_backwards_and_pages_alone_never_end_it(pages: list[int]) -> None:
    cursor = FRESH
    for returned in pages:
        before, cursor = cursor, advance(cursor, returned=returned, now=NOW)
        assert cursor.start_index > before.start_index
    assert cursor.start_index == sum(pages)
    assert not cursor.is_exhausted


def test_impossible_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="0 or more"):
        replace(FRESH, start_index=-1)
    with pytest.raises(ValueError, match="fewer than no"):
        advance(FRESH, returned=-1, now=NOW)


def test_the_words_for_stopping_are_stable() -> None:
    assert [reason.value for reason in StopReason] == ["quota", "max_per_run", "exhausted", "error"]
