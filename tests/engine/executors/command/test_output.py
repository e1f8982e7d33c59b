"""From bytes to lines: the same lines however the bytes arrive, and never too much at once."""

from hypothesis import given
from hypothesis import strategies as st

from tsuzuki.engine.executors.command.output import (
    LINE_BYTES_MAX,
    LINE_COST_MIN,
    LineSplitter,
    OutputStream,
)


def split(*chunks: bytes) -> list[str]:
    splitter = LineSplitter()
    return [line for chunk in chunks for line in splitter.feed(chunk)] + list(splitter.finish())


@given(st.lists(st.binary(max_size=40)))
def test_the_lines_do_not_depend_on_how_the_bytes_arrive(chunks: list[bytes]) -> None:
    assert split(*chunks) == split(b"".join(chunks))


@given(st.lists(st.text(alphabet=st.characters(exclude_characters="\n\r", codec="utf-8"))))
def test_lines_come_out_as_they_went_in(lines: list[str]) -> None:
    assert split("".join(f"{line}\n" for line in lines).encode()) == lines


def test_a_character_that_arrives_in_two_halves_is_whole() -> None:
    first, second = "続き\n".encode()[:4], "続き\n".encode()[4:]
    assert split(first, second) == ["続き"]


def test_a_long_line_is_cut_between_characters() -> None:
    text = "x" + "続" * 20_000
    pieces = split(text.encode())
    assert "".join(pieces) == text
    assert all(len(piece.encode()) <= LINE_BYTES_MAX for piece in pieces)


def test_a_long_line_that_is_not_text_is_cut_all_the_same() -> None:
    pieces = split(b"\x80" * (LINE_BYTES_MAX * 2))
    assert sum(map(len, pieces)) == LINE_BYTES_MAX * 2


def test_what_exceeds_the_limit_is_dropped_and_one_line_says_so() -> None:
    heard: list[str] = []
    output = OutputStream(deliver=heard.append, bytes_max=3 * LINE_COST_MIN)
    for number in range(10):
        output.feed(f"{number}\n".encode())
    output.finish()
    assert heard == ["0", "1", "2", "[output limit reached: the rest was dropped]"]
    assert output.tail(5) == "8\n9"


def test_the_tail_is_whole_lines_or_the_end_of_one() -> None:
    output = OutputStream(deliver=lambda _: None, bytes_max=10_000)
    output.feed(b"first line\nsecond line\n\n")
    assert output.tail(500) == "first line\nsecond line"
    assert output.tail(15) == "second line"
    assert output.tail(4) == "line"
