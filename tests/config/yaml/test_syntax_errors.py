"""Syntax errors have a message of our own, at their place."""

import pytest

from config.yaml.parsing import assert_refused


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("a: 1\n\tb: 2\n", "2:1", "a tab is used for indentation"),
        ("a:\n\t- b\n", "2:1", "a tab is used for indentation"),
        ("a: b: c\n", "1:5", "unexpected ': '"),
        ("a: [1, 2\nb: 3\n", "1:4", "bracket that opens here"),
        ("a: {b: 1\n", "1:4", "bracket that opens here"),
        ("a: 'x\nb: 2\n", "1:4", "not closed"),
        ('a: "x\n', "1:4", "not closed"),
        ('a: "\\q"\n', "1:5", "backslash"),
        ("a:\n  b: 1\n c: 2\n", "3:2", "does not fit"),
        ("- a\nb: 2\n", "2:1", "does not fit"),
        ("a:\n  : b\n", "2:3", "no key before"),
        ("é: 1\nb: \x07\n", "2:4", "control character (0x07)"),
        ("a: @x\n", "1:4", "cannot begin with this character"),
        ("a: `x`\n", "1:4", "cannot begin with this character"),
        ("a: 1\nb\n", "2:1", "neither a key"),
        ("a: \x07b\n", "1:4", "control character (0x07)"),
        ("a: 1\nb: \x00\n", "2:4", "control character (0x00)"),
    ],
)
def test_a_syntax_error_is_told_in_plain_words_at_its_place(
    text: str, place: str, words: str
) -> None:
    assert_refused(text, place, words)
