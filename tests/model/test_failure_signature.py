"""Failure signatures: the same cause, the same signature; what differs from run to run is not in it."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tsuzuki.model.failure_signature import TEXT_MAX, normalised, signature_of

SAME = [
    ("timed out after 30.5 s", "timed out after 7 s"),
    ("HTTP 503 from https://a.example/x?y=1", "HTTP 502 from http://b.example:80/z"),
    ("cannot read /var/lib/a.txt: denied", "cannot read /home/bob/b/c.csv: denied"),
    ("cannot read C:\\data\\a.txt: denied", "cannot read D:\\x: denied"),
    ("no such key: 'order-17'", "no such key: 'order-18'"),
    ("not allowed: 'delete the world'", "not allowed: 'eat a cake'"),
    ("object at 0x7fcda7c8bd80", "object at 0x7fcda7c8bd81"),
    ("job 5d41402abc4b2a76b9719d911017c592 lost", "job 7d793037a0760186574b0282f2f435e7 lost"),
    (
        "id 123e4567-e89b-12d3-a456-426614174000 gone",
        "id 00000000-0000-0000-0000-000000000000 gone",
    ),
    ("at 2026-11-17T07:00:00Z it broke", "at 2025-01-02T03:04:05.678+09:00 it broke"),
    ("rows 1, 2, 3 are bad", "rows 7, 8 are bad"),
    ("worker host1-22-a1b2c3 is silent", "worker host2-7-d4e5f6 is silent"),
    ("Traceback (most recent call last):\n  File 'a'\nKeyError: 'a'", "KeyError: 'a'"),
    ("exit code 1: KeyError: 'a'", "KeyError: 'a'"),
    ("exit code 1: no such file: /a/b", "exit code 2: no such file: /c"),
    ("no such file: '/var/lib/a.txt'", "no such file: '/home/bob/b.csv'"),
    ("first line\nand 1", "first line\nand another"),
]
DIFFERENT = [
    ("connection refused", "connection reset"),
    ("KeyError: 'a'", "ValueError: 'a'"),
    ("KeyError: 'customer_id'", "KeyError: 'order_id'"),
    ("No module named 'nosuch'", "No module named 'other'"),
    ("exit code 1", "exit code 2"),
    ("exit code 1", "ended by signal SIGKILL"),
    ("cannot read /a/b: denied", "cannot read /a/b: not found"),
    ("don't do this, can't do that", "don't do that, can't do this"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_errors_of_one_cause_have_one_signature(one: str, other: str) -> None:
    assert signature_of("handler_failed", one) == signature_of("handler_failed", other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_errors_of_other_causes_have_others(one: str, other: str) -> None:
    assert signature_of("handler_failed", one) != signature_of("handler_failed", other)


def test_the_reason_is_a_part_of_it() -> None:
    assert signature_of("timeout", "it broke") != signature_of("handler_failed", "it broke")
    assert signature_of("worker_lost", None).text == "worker_lost"
    assert signature_of(None, None).text == "failed"
    assert signature_of("handler_failed", None).text == "handler_failed"


def test_a_handler_that_failed_is_named_by_its_error_alone() -> None:
    assert signature_of("handler_failed", "exit code 1: KeyError: 'id'").text == "KeyError: 'id'"


@given(st.text(max_size=3_000))
@example("'" * 3_000)
@example("/" * 3_000)
@example("\ud800")
def test_any_error_has_a_short_signature_on_one_line_without_digits(error: str) -> None:
    text = normalised(error)
    assert len(text) <= TEXT_MAX
    assert not re.search(r"[0-9\n]", text)
    assert len(signature_of("x", error).id) == 16


@given(st.integers(0), st.integers(0))
def test_numbers_make_no_difference(one: int, other: int) -> None:
    assert normalised(f"row {one} of table") == normalised(f"row {other} of table")


@given(st.text("abcdefg /.:'", max_size=60))
def test_what_stands_on_later_lines_makes_no_difference(line: str) -> None:
    assert normalised(f"it broke\n{line}") == normalised("it broke")
