"""A job that is not in a file."""

from typing import Any

import pytest

from tsuzuki.config import InvalidFile, parse_job


def test_a_body_that_comes_from_no_file_is_read_by_the_same_rules() -> None:
    body: dict[str, Any] = {"command": "echo hi", "schedule": {"every": "10m"}}
    assert parse_job("it", body, kinds={}).options["argv"] == ["echo", "hi"]
    with pytest.raises(InvalidFile) as caught:
        parse_job("it", {**body, "priority": "high"}, kinds={})
    assert caught.value.place is None
    assert caught.value.message.startswith("`priority` must be")
