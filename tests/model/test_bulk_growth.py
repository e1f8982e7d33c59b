"""When a bulk action has to be previewed again."""

import pytest

from tsuzuki.model.bulk import grew_too_much


@pytest.mark.parametrize(
    ("previewed", "now", "is_too_much"),
    [(10, 11, False), (10, 12, True), (30, 33, False), (9, 10, True), (0, 0, False), (0, 1, True)],
)
def test_a_set_may_grow_by_a_tenth_and_no_more(previewed: int, now: int, is_too_much: bool) -> None:
    assert grew_too_much(previewed=previewed, now=now) is is_too_much
