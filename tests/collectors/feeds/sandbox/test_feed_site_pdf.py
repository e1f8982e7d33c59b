"""The PDFs of the feed site, read by pypdf."""

import io
import logging

import pytest
from pypdf import PdfReader
from pypdf.errors import FileNotDecryptedError, LimitReachedError, PyPdfError

from tsuzuki.collectors.feeds.sandbox.feed_site.pdf import (
    LINES_PER_PAGE,
    bomb_pdf,
    broken_pdf,
    encrypted_pdf,
    image_only_pdf,
    looping_pdf,
    many_pages_pdf,
    pdf,
)


def read(body: bytes) -> PdfReader:
    return PdfReader(io.BytesIO(body), strict=True)


@pytest.mark.parametrize(
    "text", ["本日、橋が開通しました。", "Plain (text) with \\ signs", "Émile “quoted” 한국어"]
)
def test_text_is_read_back(text: str) -> None:
    assert read(pdf(text)).pages[0].extract_text().strip() == text


def test_a_long_text_takes_pages_and_loses_nothing() -> None:
    lines = [f"行{number}" for number in range(100)]
    found = read(pdf("\n".join(lines), title="題名"))
    assert len(found.pages) == -(-100 // LINES_PER_PAGE)
    assert "\n".join(page.extract_text() for page in found.pages).split() == lines
    assert found.metadata is not None
    assert found.metadata.title == "題名"


def test_a_long_line_is_broken() -> None:
    text = "".join(read(pdf("橋" * 500)).pages[0].extract_text().split())
    assert text == "橋" * 500


def test_the_same_text_makes_the_same_bytes() -> None:
    assert pdf("橋") == pdf("橋")


def test_what_the_font_lacks_is_replaced() -> None:
    assert read(pdf("a\U0001f600b")).pages[0].extract_text().strip() == "a\u3013b"


def test_an_encrypted_one_asks_for_a_password() -> None:
    found = read(encrypted_pdf())
    assert found.is_encrypted
    with pytest.raises(FileNotDecryptedError):
        found.pages[0].extract_text()


def test_a_broken_one_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    with pytest.raises(PyPdfError):
        read(broken_pdf()).pages[0].extract_text()


def test_a_bomb_is_small_until_it_is_unpacked() -> None:
    body = bomb_pdf(200_000_000)
    assert len(body) < 500_000
    with pytest.raises(LimitReachedError):
        read(body).pages[0].extract_text()


def test_a_scan_has_no_text() -> None:
    assert read(image_only_pdf()).pages[0].extract_text() == ""


def test_one_with_many_pages_has_them() -> None:
    found = read(many_pages_pdf(50))
    assert len(found.pages) == 50
    assert found.pages[49].extract_text().strip() == "Page 50"


def test_a_page_tree_that_holds_itself_is_one() -> None:
    tree = read(looping_pdf()).trailer["/Root"]["/Pages"]
    assert tree["/Kids"][1].get_object() == tree
