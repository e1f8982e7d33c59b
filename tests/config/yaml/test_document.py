"""Reading a file: what it says, and where. Hostile files cost little and are refused in place."""

import json
import textwrap
import time
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsuzuki.config.yaml.document import Document, parse_document, read_document
from tsuzuki.config.yaml.source import SIZE_MAX, Source, decode_source
from tsuzuki.model.errors import ConfigurationError, Unreachable


def document(text: str) -> Document:
    return parse_document(Source(file="tsuzuki.yaml", text=text))


def refused(text: str) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        document(text)
    assert caught.value.hint, "every refusal says what to do"
    return caught.value


def where(error: ConfigurationError) -> str:
    return str(error.place)


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


@pytest.mark.parametrize(
    "text",
    ["007", "0x1F", "0o17", "1_000", "12:30", "2024-01-01", ".5", ".nan", ".inf", "1e999", "yes",
     "on", "+5", "1." , "9" * 5000],
)  # fmt: skip
def test_only_what_json_calls_a_number_or_truth_is_one(text: str) -> None:
    assert document(f"value: {text}\n").data == {"value": text}


def test_keys_are_text_whatever_they_look_like() -> None:
    assert document("2024: a\nnull: b\ntrue: c\n").data == {"2024": "a", "null": "b", "true": "c"}


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", "---\n", "null\n"])
def test_a_file_that_says_nothing_reads_as_nothing(text: str) -> None:
    assert document(text).data is None


def test_every_key_and_value_has_its_place() -> None:
    found = document("a: 1\njobs:\n  hello:\n    command: [echo, hi]\n    timeout:\n")
    assert str(found.place_of_key(("jobs", "hello", "command"))) == "tsuzuki.yaml:4:5"
    assert str(found.place_of_value(("jobs", "hello", "command"))) == "tsuzuki.yaml:4:14"
    assert str(found.place_of_value(("jobs", "hello", "command", 1))) == "tsuzuki.yaml:4:21"
    assert str(found.place_of_value(("jobs", "hello", "timeout"))) == "tsuzuki.yaml:5:13"
    assert found.place_of_value(("a",)).text == "a: 1"


def test_what_does_not_exist_is_placed_at_the_nearest_thing_that_does() -> None:
    found = document("jobs:\n  hello:\n    command: x\n")
    assert str(found.place_of_value(("jobs", "hello", "python"))) == "tsuzuki.yaml:2:3"
    assert str(found.place_of_key(("nothing",))) == "tsuzuki.yaml:1:1"


def test_columns_count_characters_not_bytes() -> None:
    found = document("説明: {続き: 値}\n")
    assert str(found.place_of_value(("説明", "続き"))) == "tsuzuki.yaml:1:10"


def test_byte_order_mark_and_windows_line_ends_do_not_shift_places() -> None:
    source = decode_source(b"\xef\xbb\xbfa: 1\r\nb: 2\r\n", file="tsuzuki.yaml")
    found = parse_document(source)
    assert found.data == {"a": 1, "b": 2}
    assert str(found.place_of_value(("b",))) == "tsuzuki.yaml:2:4"
    assert found.place_of_value(("b",)).text == "b: 2"
    assert source.encode() == b"\xef\xbb\xbfa: 1\r\nb: 2\r\n"


def test_aliases_and_merges_read_as_what_they_stand_for() -> None:
    found = document("a: &base {x: 1, y: 2}\nb: *base\nc:\n  <<: *base\n  y: 3\n")
    assert found.data["b"] == {"x": 1, "y": 2}
    assert found.data["c"] == {"x": 1, "y": 3}
    assert str(found.place_of_value(("c", "x"))) == "tsuzuki.yaml:1:14"


def test_the_first_of_several_merged_mappings_wins() -> None:
    found = document("a: &a {x: 1}\nb: &b {x: 2, y: 2}\nc: {<<: [*a, *b]}\n")
    assert found.data["c"] == {"x": 1, "y": 2}


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("a: 1\njobs:\n  x: 1\n  x: 2\n", "4:3", "`x` is given twice"),
        ("a: 1\n\tb: 2\n", "2:1", "a tab is used for indentation"),
        ("a:\n\t- b\n", "2:1", "a tab is used for indentation"),
        ("a: b: c\n", "1:5", "': ' is not expected"),
        ("a: [1, 2\nb: 3\n", "1:4", "bracket that opens here"),
        ("a: {b: 1\n", "1:4", "bracket that opens here"),
        ("a: 'x\nb: 2\n", "1:4", "never closed"),
        ('a: "x\n', "1:4", "never closed"),
        ('a: "\\q"\n', "1:6", "backslash"),
        ("a:\n  b: 1\n c: 2\n", "3:2", "does not fit"),
        ("- a\nb: 2\n", "2:1", "does not fit"),
        ("a: @x\n", "1:4", "cannot begin with this character"),
        ("a: `x`\n", "1:4", "cannot begin with this character"),
        ("a: 1\nb\n", "2:1", "neither a key"),
        ("a: *b\n", "1:4", "refers to nothing"),
        ("a: &x [*x]\n", "1:8", "stands inside what it refers to"),
        ("a: !secret b\n", "1:4", "tags"),
        ("a: !!python/object/apply:os.system [ls]\n", "1:4", "tags"),
        ("!x a: 1\n", "1:1", "tags"),
        ("a: 1\n---\nb: 2\n", "2:1", "second document"),
        ("%YAML 1.1\n---\na: 1\n", "2:1", "directives"),
        ("%TAG ! tag:x,2000:\n---\na: 1\n", "2:1", "directives"),
        ("? [a]\n: b\n", "1:3", "cannot be a key"),
        (": b\n", "1:1", "cannot be a key"),
        ("a: \x07b\n", "1:4", "control character (0x07)"),
        ("a: 1\nb: \x00\n", "2:4", "control character (0x00)"),
        ("a: {<<: 1}\n", "1:9", "`<<` takes a mapping"),
    ],
)
def test_a_fault_of_syntax_is_told_in_plain_words_at_its_place(
    text: str, place: str, words: str
) -> None:
    error = refused(text)
    assert where(error) == f"tsuzuki.yaml:{place}"
    assert words in error.message
    assert error.place is not None
    assert error.place.line is not None
    assert error.place.text == text.split("\n")[error.place.line - 1]


def test_the_hint_for_a_repeated_key_names_the_line_of_the_first() -> None:
    error = refused("jobs:\n  hello: {command: a}\n  other: {command: b}\n  hello: {command: c}\n")
    assert where(error) == "tsuzuki.yaml:4:3"
    assert error.hint is not None
    assert "line 2" in error.hint


def test_bytes_that_are_not_utf8_are_found_where_they_stand() -> None:
    with pytest.raises(ConfigurationError) as caught:
        decode_source(b"a: 1\nb: caf\xe9\n", file="tsuzuki.yaml")
    assert where(caught.value) == "tsuzuki.yaml:2:7"
    assert "0xe9" in caught.value.message


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_other_encodings_are_named_as_the_fault(encoding: str) -> None:
    with pytest.raises(ConfigurationError, match="is not UTF-8"):
        decode_source("a: 1\n".encode(encoding), file="tsuzuki.yaml")


def test_binary_content_is_refused() -> None:
    with pytest.raises(ConfigurationError):
        parse_document(decode_source(bytes(range(256)) * 10, file="tsuzuki.yaml"))


def test_a_billion_laughs_are_refused_before_they_are_laughed() -> None:
    lines = ["a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    begun = time.perf_counter()
    error = refused("\n".join(lines) + "\n")
    assert time.perf_counter() - begun < 1
    assert "100,000" in error.message
    assert where(error).startswith("tsuzuki.yaml:5:")


@pytest.mark.parametrize(("opening", "item"), [("[", ""), ("{a: ", "")])
def test_nesting_beyond_the_limit_is_refused_however_deep(opening: str, item: str) -> None:
    error = refused("x: " + opening * 50_000 + item)
    assert "nested more than 50 deep" in error.message
    assert error.place is not None
    assert error.place.line == 1


def test_block_nesting_beyond_the_limit_is_refused() -> None:
    text = "".join(f"{' ' * depth}a:\n" for depth in range(60))
    error = refused(text)
    assert "nested more than 50 deep" in error.message
    assert where(error) == "tsuzuki.yaml:51:51"


def test_fifty_levels_are_read() -> None:
    data = document("x: " + "[" * 49 + "]" * 49 + "\n").data
    for _ in range(48):
        data = next(iter(data.values())) if isinstance(data, dict) else data[0]
    assert data == [[]]


def test_aliases_cannot_build_depth_either() -> None:
    lines = ["a0: &a0 [x]"] + [f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 60)]
    assert "nested more than 50 deep" in refused("\n".join(lines) + "\n").message


def test_values_are_counted_after_aliases_are_replaced() -> None:
    thousand = "a: &a [" + "1," * 999 + "]\n"
    assert document(thousand + "b: [" + "*a," * 98 + "]\n").data["b"][97][998] == 1
    assert "100,000" in refused(thousand + "b: [" + "*a," * 99 + "]\n").message


def test_a_file_beyond_one_mebibyte_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "tsuzuki.yaml"
    path.write_bytes(b"# " + b"x" * SIZE_MAX)
    with pytest.raises(ConfigurationError, match="larger than 1 MiB"):
        read_document(path)


def test_a_missing_file_is_told_with_the_way_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="does not exist") as caught:
        read_document(tmp_path / "tsuzuki.yaml")
    assert caught.value.hint is not None
    assert "tsuzuki init" in caught.value.hint


@pytest.mark.parametrize("path", ["/", "/dev/zero"])
def test_what_is_no_regular_file_is_refused_without_reading(path: str) -> None:
    with pytest.raises(ConfigurationError, match="not a regular file"):
        read_document(Path(path))


def test_a_file_that_cannot_be_reached_is_unreachable(tmp_path: Path) -> None:
    loop = tmp_path / "loop.yaml"
    loop.symlink_to(loop)
    with pytest.raises(Unreachable, match="cannot be read"):
        read_document(loop)


def test_the_line_shown_with_an_error_hides_passwords() -> None:
    error = refused("url: postgresql://me:hunter2@host/db: x\n")
    assert error.place is not None
    assert error.place.text == "url: postgresql://me:***@host/db: x"


PIECES = [
    "a", "b", ": ", ":", "\n", "  ", "- ", "? ", "[", "]", "{", "}", ",", "&x ", "*x", "!", "|", ">",
    "'", '"', "#", " # c", "%YAML 1.2", "---", "...", "\t", "\r\n", "<<: ", "~", "\\", "@", "\u2028",
]  # fmt: skip


@settings(deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=16).map(lambda pieces: "".join(pieces).encode()))
def test_any_text_is_either_json_or_refused_in_words(content: bytes) -> None:
    with suppress(ConfigurationError):
        json.dumps(parse_document(decode_source(content, file="tsuzuki.yaml")).data)


@settings(deadline=None)
@given(st.binary(max_size=40))
def test_any_bytes_are_either_json_or_refused_in_words(content: bytes) -> None:
    with suppress(ConfigurationError):
        json.dumps(parse_document(decode_source(content, file="tsuzuki.yaml")).data)
