"""Reading a file as text: encodings, sizes, and files that cannot be read."""

from pathlib import Path

import pytest

from config.yaml.parsing import refused, where
from tsuzuki.config.yaml.document import parse_document, read_document
from tsuzuki.config.yaml.source import SIZE_MAX, decode_source
from tsuzuki.model.errors import ConfigurationError, Unreachable


def test_byte_order_mark_and_windows_line_ends_do_not_shift_places() -> None:
    source = decode_source(b"\xef\xbb\xbfa: 1\r\nb: 2\r\n", file="tsuzuki.yaml")
    found = parse_document(source)
    assert found.data == {"a": 1, "b": 2}
    assert str(found.place_of_value(("b",))) == "tsuzuki.yaml:2:4"
    assert found.place_of_value(("b",)).text == "b: 2"
    assert source.encode() == b"\xef\xbb\xbfa: 1\r\nb: 2\r\n"


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
    with pytest.raises(Unreachable, match="cannot read"):
        read_document(loop)


def test_the_line_shown_with_an_error_hides_passwords() -> None:
    error = refused("url: postgresql://me:hunter2@host/db: x\n")
    assert error.place is not None
    assert error.place.text == "url: postgresql://me:***@host/db: x"
