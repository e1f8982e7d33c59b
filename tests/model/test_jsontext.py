"""What may be stored as JSON."""

from typing import Any

import pytest

from tsuzuki.model import jsontext
from tsuzuki.model.errors import UsageError


def nested(levels: int) -> Any:
    value: Any = 0
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


def test_a_value_is_nested_up_to_a_limit() -> None:
    jsontext.check(nested(jsontext.DEPTH_MAX))
    with pytest.raises(UsageError, match="more than 64 levels"):
        jsontext.check(nested(jsontext.DEPTH_MAX + 1))


def test_brackets_that_are_text_or_stand_side_by_side_are_not_nested() -> None:
    jsontext.check({"text": "[" * 100, "many": [[]] * 100})
