"""Parsing: the data of a file, and the limits that a hostile file meets."""

import json
import textwrap
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from config.yaml.parsing import assert_refused, document, refused, where
from tsuzuki.config.yaml.document import parse_document
from tsuzuki.config.yaml.source import decode_source
from tsuzuki.model.errors import ConfigurationError


def test_a_file_reads_as_plain_data() -> None:
    text = textwrap.dedent(
        """\
        text: hello
        quoted: "12"
        number: 12
        negative: -1
        broken: 1.5
        yes: true
        nothing:
        tilde: ~
        list: [a, 1, {b: c}]
        nested:
          - one
          - two: 2
        folded: >
          one
          two
        """
    )
    assert document(text).data == {
        "text": "hello",
        "quoted": "12",
        "number": 12,
        "negative": -1,
        "broken": 1.5,
        "yes": True,
        "nothing": None,
        "tilde": None,
        "list": ["a", 1, {"b": "c"}],
        "nested": ["one", {"two": 2}],
        "folded": "one two\n",
    }


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", "---\n", "null\n"])
def test_a_file_that_says_nothing_reads_as_nothing(text: str) -> None:
    assert document(text).data is None


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("a: 1\njobs:\n  x: 1\n  x: 2\n", "4:3", "duplicate key `x`"),
        ("a: *b\n", "1:4", "refers to nothing"),
        ("a: &x [*x]\n", "1:8", "refers to a value that contains it"),
        ("a: !secret b\n", "1:4", "tags"),
        ("a: !!python/object/apply:os.system [ls]\n", "1:4", "tags"),
        ("!x a: 1\n", "1:1", "tags"),
        ("a: 1\n---\nb: 2\n", "2:1", "second document"),
        ("%YAML 1.1\n---\na: 1\n", "1:1", "directives"),
        ("%TAG ! tag:x,2000:\n---\na: 1\n", "1:1", "directives"),
        ("? [a]\n: b\n", "1:3", "cannot be a key"),
        (": b\n", "1:1", "no key before"),
        ("a: {<<: 1}\n", "1:9", "`<<` requires a mapping"),
    ],
)
def test_what_is_not_supported_is_refused_at_its_place(text: str, place: str, words: str) -> None:
    assert_refused(text, place, words)


def test_the_hint_for_a_repeated_key_names_the_line_of_the_first() -> None:
    error = refused("jobs:\n  hello: {command: a}\n  other: {command: b}\n  hello: {command: c}\n")
    assert where(error) == "tsuzuki.yaml:4:3"
    assert error.hint is not None
    assert "line 2" in error.hint


def test_a_billion_laughs_are_refused_before_they_are_laughed() -> None:
    lines = ["a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    started_at = time.perf_counter()
    error = refused("\n".join(lines) + "\n")
    assert time.perf_counter() - started_at < 1
    assert "100,000" in error.message
    assert where(error).startswith("tsuzuki.yaml:5:")


@pytest.mark.parametrize(("opening", "item"), [("[", ""), ("{a: ", "")])
def test_nesting_beyond_the_limit_is_refused_however_deep(opening: str, item: str) -> None:
    error = refused("x: " + opening * 50_000 + item)
    assert "nested more than 50 levels deep" in error.message
    assert error.place is not None
    assert error.place.line == 1


def test_block_nesting_beyond_the_limit_is_refused() -> None:
    text = "".join(f"{' ' * depth}a:\n" for depth in range(60))
    error = refused(text)
    assert "nested more than 50 levels deep" in error.message
    assert where(error) == "tsuzuki.yaml:51:51"


def test_fifty_levels_are_read() -> None:
    data = document("x: " + "[" * 49 + "]" * 49 + "\n").data
    for _ in range(48):
        data = next(iter(data.values())) if isinstance(data, dict) else data[0]
    assert data == [[]]


def test_aliases_cannot_build_depth_either() -> None:
    lines = ["a0: &a0 [x]"] + [f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 60)]
    assert "nested more than 50 levels deep" in refused("\n".join(lines) + "\n").message


def test_values_are_counted_after_aliases_are_replaced() -> None:
    thousand = "a: &a [" + "1," * 999 + "]\n"
    assert document(thousand + "b: [" + "*a," * 98 + "]\n").data["b"][97][998] == 1
    assert "100,000" in refused(thousand + "b: [" + "*a," * 99 + "]\n").message


PIECES = [
    "a", "b", ": ", ":", "\n", "  ", "- ", "? ", "[", "]", "{", "}", ",", "&x ", "*x", "!", "|", ">",
    "'", '"', "#", " # c", "%YAML 1.2", "---", "...", "\t", "\r\n", "<<: ", "~", "\\", "@", "\u2028",
]  # fmt: skip


def assert_refused_in_words(error: ConfigurationError) -> None:
    """The error has message, hint and place. A wrong encoding concerns the whole file; any other
    error has line and column too."""
    assert error.message
    assert error.hint
    assert error.place is not None
    assert error.place.file == "tsuzuki.yaml"
    assert error.specific_code == "config_file" or (error.place.line and error.place.column)


def assert_json_or_refused(content: bytes) -> None:
    try:
        json.dumps(parse_document(decode_source(content, file="tsuzuki.yaml")).data)
    except ConfigurationError as error:
        assert_refused_in_words(error)


@example(b"a: [1")
@example(b"a: 1")
@given(st.lists(st.sampled_from(PIECES), max_size=16).map(lambda pieces: "".join(pieces).encode()))
def test_any_text_is_either_json_or_refused_in_words(content: bytes) -> None:
    assert_json_or_refused(content)


@example(b"a: \xe9")
@example(b"\xff\xfea")
@example(b"a: \x00")
@given(st.binary(max_size=40))
def test_any_bytes_are_either_json_or_refused_in_words(content: bytes) -> None:
    assert_json_or_refused(content)
