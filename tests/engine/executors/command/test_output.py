"""The output of a process is passed on in whole lines, however the bytes arrive, and never too much at once."""

from hypothesis import given
from hypothesis import strategies as st

from tsuzuki.engine.executors.command.output import TAIL_BYTES_MAX, OutputStream
from tsuzuki.engine.output_lines import split_lines, text_of
from tsuzuki.model.run_limits import LOG_LINE_BYTES_MAX


def split(*chunks: bytes) -> list[str]:
    delivered: list[bytes] = []
    output = OutputStream(deliver=delivered.append)
    for chunk in chunks:
        output.feed(chunk)
    output.finish()
    return [text_of(line) for lines in delivered for line in split_lines(lines)]


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
    for chunks in ([text.encode()], [text.encode(), b"\n"], [f"{text}\n".encode()]):
        pieces = split(*chunks)
        assert "".join(pieces) == text
        assert all(len(piece.encode()) <= LOG_LINE_BYTES_MAX for piece in pieces)


def test_a_long_line_that_is_not_text_is_cut_all_the_same() -> None:
    pieces = split(b"\x80" * (LOG_LINE_BYTES_MAX * 2))
    assert sum(map(len, pieces)) == LOG_LINE_BYTES_MAX * 2


def test_secrets_are_masked_in_whole_lines_and_in_the_tail() -> None:
    delivered: list[bytes] = []
    output = OutputStream(
        deliver=delivered.append, mask=lambda lines: lines.replace(b"hunter2", b"***")
    )
    for chunk in (b"password hun", b"ter2\nagain hunter2"):
        output.feed(chunk)
    output.finish()
    assert delivered == [b"password ***", b"again ***"]
    assert output.tail() == "password ***\nagain ***"


def test_the_tail_is_whole_lines_or_the_end_of_one() -> None:
    output = OutputStream(deliver=lambda _: None)
    output.feed(b"first line\nsecond line\n\n")
    assert output.tail() == "first line\nsecond line"
    output.feed(b"x" * (TAIL_BYTES_MAX - 5) + b"\nlast")
    assert output.tail() == "last"
    output.feed(b"y" * 2 * TAIL_BYTES_MAX)
    assert output.tail() == "y" * TAIL_BYTES_MAX
    output.feed(b"\n")
    assert output.tail() == "y" * (TAIL_BYTES_MAX - 1)
