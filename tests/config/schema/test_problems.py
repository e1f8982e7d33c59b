"""All problems of a file are one error."""

import pytest

from config.schema.definitions import read
from tsuzuki.config import InvalidFile
from tsuzuki.config.schema.problems import format_path


def test_all_problems_are_told_together_from_the_top_down() -> None:
    text = """\
        timezone: Nowhere
        jobs:
          b:
            command: x
            priority: high
          a:
            comand: x
            timeout: soon
        version: 3
        """
    with pytest.raises(InvalidFile) as caught:
        read(text)
    error = caught.value
    assert [str(problem.place) for problem in error.problems] == [
        f"tsuzuki.yaml:{place}" for place in ("1:11", "5:15", "7:5", "8:14", "9:10")
    ]
    assert error.message == f"{error.problems[0].message} (and 4 more)"
    assert error.place == error.problems[0].place
    assert [told["line"] for told in error.as_dict()["problems"]] == [1, 5, 7, 8, 9]


def test_a_key_path_is_written_with_dots_and_indexes() -> None:
    assert format_path(("backoff", "cap")) == "backoff.cap"
    assert format_path(("tags", 1)) == "tags[1]"
