"""Text of strangers made plain."""

import pytest

from tsuzuki.collectors.feeds.documents.text_cleaning import (
    decoded,
    normalised,
    single_line,
    stripped_markup,
)

JAPANESE = "総務省は、電波の利用に関する省令案についての意見を募集します。カタカナとひらがな。"


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("  a \t b\u3000c  ", "a b c"),
        ("a\r\nb\rc\u2028d", "a\nb\nc\nd"),
        ("a\n\n \n\n\nb", "a\n\nb"),
        ("a\0b\x1b[31mc", "ab[31mc"),
        ("a\u202eb\u200bc\ufeffd\U000e0041e", "abcde"),
        ("a\ud800b", "ab"),
        ("か\u3099", "が"),
        ("👨\u200d👩", "👨\u200d👩"),
    ],
)
def test_blank_space_has_one_form_and_nothing_is_invisible(text: str, plain: str) -> None:
    assert normalised(text) == plain


def test_a_single_line_is_one() -> None:
    assert single_line(" a\n b ", characters_max=10) == "a b"
    assert single_line("a" * 1_000, characters_max=10) == "a" * 10


@pytest.mark.parametrize(
    ("codec", "said"),
    [
        ("utf-8", None),
        ("utf-8", "utf-8"),
        ("utf-8", "shift_jis"),
        ("cp932", "Shift_JIS"),
        ("cp932", "utf-8"),
        ("cp932", None),
        ("euc_jp", "EUC-JP"),
        ("euc_jp", None),
        ("euc_jp", "utf-8"),
        ("iso2022_jp", None),
        ("iso2022_jp", "utf-8"),
        ("utf-16", None),
        ("utf-8-sig", "shift_jis"),
        ("utf-8", "no-such-charset"),
        ("utf-8", "zlib"),
        ("utf-8", "unicode_escape"),
        ("utf-8", "utf-7"),
        ("utf-8", "undefined"),
    ],
)
def test_the_charset_that_fits_is_used_whatever_is_said(codec: str, said: str | None) -> None:
    assert decoded(JAPANESE.encode(codec), said) in (JAPANESE, "\ufeff" + JAPANESE)


def test_a_charset_in_the_page_is_used() -> None:
    page = f'<meta http-equiv="Content-Type" content="text/html; charset=Shift_JIS">{JAPANESE}①'
    assert decoded(page.encode("cp932"), None) == page


def test_a_charset_is_believed_in_spite_of_a_broken_character() -> None:
    page = (JAPANESE * 20).encode("cp932") + b"\xfd\xff"
    assert decoded(page, "shift_jis").startswith(JAPANESE)


def test_bytes_in_no_charset_are_still_text() -> None:
    assert "abc" in decoded(b"abc\xff\x81\x8d\x00\xfe", "utf-8")


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("<p>a</p><p>b &amp; c</p>", " a  b & c "),
        ("a<script>x<b</script >b", "ab"),
        ("a<!-- <p>x -->b", "ab"),
        ("a<style", "a"),
        ("a<", "a "),
        ("<head><title>t</title></head>a", "a"),
    ],
)
def test_markup_is_stripped(markup: str, text: str) -> None:
    assert stripped_markup(markup) == text


@pytest.mark.parametrize("unit", ["<", "<script>", "<!--", "<p", "</", "&", "<head", "<a href='"])
def test_markup_made_to_take_long_does_not(unit: str) -> None:
    assert len(stripped_markup(unit * 200_000)) <= len(unit) * 200_000
