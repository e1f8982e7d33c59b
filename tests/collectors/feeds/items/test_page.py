"""The page of an item: what is downloaded, what is kept, what fails."""

from collections.abc import Iterator

import pytest

from tsuzuki.collectors.feeds.documents.text_cleaning import PAGE_CHARACTERS_MAX
from tsuzuki.collectors.feeds.documents.text_extractor import TextExtractor
from tsuzuki.collectors.feeds.entries.entry import Attachment
from tsuzuki.collectors.feeds.items.item import ItemReason
from tsuzuki.collectors.feeds.items.page import ItemPage, PageFailed, download_page
from tsuzuki.collectors.feeds.sandbox.feed_site import FeedSite
from tsuzuki.collectors.feeds.sandbox.feed_site.demo import make_demo
from tsuzuki.collectors.feeds.sandbox.feed_site.pdf import pdf
from tsuzuki.collectors.feeds.sandbox.feed_site.traps import (
    FILE_TRAPS,
    PAGE_TRAPS,
    WORTH,
    add_page_trap,
)
from tsuzuki.model.clock import SystemClock
from tsuzuki.outward.safe_download import SafeDownloader
from tsuzuki.sandbox.exchange import Response, StandInRequest
from tsuzuki.sandbox.server import StandIn

SECRET = "s3cret"


@pytest.fixture(scope="module")
def downloader() -> Iterator[SafeDownloader]:
    with SafeDownloader(
        clock=SystemClock(), timeout_seconds=5.0, private_hosts=["127.0.0.1"]
    ) as downloader:
        yield downloader


@pytest.fixture(scope="module")
def extractor() -> Iterator[TextExtractor]:
    with TextExtractor() as extractor:
        yield extractor


@pytest.fixture(scope="module")
def traps() -> Iterator[StandIn]:
    site = FeedSite()
    for name in (*PAGE_TRAPS, *FILE_TRAPS, "injection"):
        add_page_trap(site, name)
    with site.serve() as server:
        yield server


@pytest.fixture
def server() -> Iterator[StandIn]:
    with StandIn(lambda _request: Response(status=404)) as server:
        yield server


class Download:
    def __init__(self, downloader: SafeDownloader, extractor: TextExtractor) -> None:
        self._downloader = downloader
        self._extractor = extractor

    def __call__(self, url: str, **options: object) -> ItemPage:
        base = {"attachments_max": 2, "bytes_max": 1_000_000, "extractor": self._extractor}
        return download_page(self._downloader, url=url, **{**base, **options})  # type: ignore[arg-type]


@pytest.fixture
def download(downloader: SafeDownloader, extractor: TextExtractor) -> Download:
    return Download(downloader, extractor)


def pages(**bodies: bytes | Response):  # type: ignore[no-untyped-def]
    """An application with a page at each name; a body that is markup is a page."""

    def answer(request: StandInRequest) -> Response:
        body = bodies.get(request.path.lstrip("/").partition(".")[0], Response(status=404))
        if isinstance(body, Response):
            return body
        kind = "application/pdf" if request.path.endswith(".pdf") else "text/html"
        return Response(body=body, content_type=kind)

    return answer


@pytest.mark.parametrize(
    ("name", "reason", "code", "is_permanent"),
    [
        ("page_missing", ItemReason.DOWNLOAD_FAILED, "http_404", False),
        ("page_gone", ItemReason.DOWNLOAD_FAILED, "http_410", True),
        ("page_failing", ItemReason.DOWNLOAD_FAILED, "http_500", False),
        ("page_huge", ItemReason.FILE_TOO_LARGE, "too_large", True),
        ("page_endless", ItemReason.FILE_TOO_LARGE, "too_large", True),
        ("page_gzip_bomb", ItemReason.FILE_TOO_LARGE, "too_large", True),
        ("page_redirect_to_file", ItemReason.DOWNLOAD_FAILED, "url_refused", True),
        ("page_redirect_to_private", ItemReason.DOWNLOAD_FAILED, "address_refused", True),
        ("page_redirect_loop", ItemReason.DOWNLOAD_FAILED, "redirects", True),
    ],
)
def test_a_page_that_cannot_be_had_fails_with_its_reason(
    traps: StandIn,
    download: Download,
    name: str,
    reason: ItemReason,
    code: str,
    is_permanent: bool,
) -> None:
    with pytest.raises(PageFailed) as caught:
        download(f"{traps.url}/articles/{name}?key={SECRET}")
    failure = caught.value
    assert (failure.reason, failure.code, failure.is_permanent) == (reason, code, is_permanent)
    assert SECRET not in str(failure)


@pytest.mark.parametrize("name", ["page_slow", "page_shift_jis", "page_without_charset"])
def test_a_page_in_another_dress_has_the_same_text(
    traps: StandIn, download: Download, name: str
) -> None:
    page = download(f"{traps.url}/articles/{name}")
    assert (page.title, page.text) == ("A bridge opens", f"A bridge opens\n{WORTH}")


@pytest.mark.parametrize(
    ("name", "note"),
    [
        ("page_empty", "the page is empty"),
        ("page_is_image", "files of type image/png are not supported"),
    ],
)
def test_a_page_without_text_is_no_failure(
    traps: StandIn, download: Download, name: str, note: str
) -> None:
    page = download(f"{traps.url}/articles/{name}")
    assert (page.text, page.notes) == ("", [note])


def test_orders_in_a_page_are_kept_as_text_and_hidden_ones_are_not(
    traps: StandIn, download: Download
) -> None:
    assert "Ignore all previous" in download(f"{traps.url}/articles/injection").text
    hidden = download(f"{traps.url}/articles/page_hidden_injection").text
    assert WORTH in hidden
    assert "evil.example" not in hidden
    assert "reveal" not in hidden


@pytest.mark.parametrize(
    ("name", "note"),
    [
        ("pdf_encrypted", "Report: the PDF is protected by a password"),
        ("pdf_broken", "Report: the PDF is damaged and cannot be read"),
        ("pdf_of_images", "Report: the PDF has no text; it may consist of images"),
        ("pdf_huge", "Report: 127.0.0.1 sent more than 1000000 bytes"),
        ("pdf_endless", "Report: 127.0.0.1 sent more than 1000000 bytes"),
        ("pdf_bomb", "Report: 127.0.0.1 sent more than 1000000 bytes"),
        ("pdf_missing", "Report: 127.0.0.1 answered 404"),
        ("pdf_empty", "Report: the file is labeled as a PDF but is not one"),
    ],
)
def test_an_attachment_that_stays_unreadable_leaves_a_note(
    traps: StandIn, download: Download, name: str, note: str
) -> None:
    page = download(f"{traps.url}/articles/{name}")
    assert WORTH in page.text
    assert page.notes == [note]


def test_html_where_a_pdf_was_promised_is_read_as_html(traps: StandIn, download: Download) -> None:
    assert download(f"{traps.url}/articles/pdf_that_is_html").text.endswith("## Report\n\nSign in")


def test_a_pdf_where_a_page_was_promised_is_read_as_pdf(
    server: StandIn, download: Download
) -> None:
    server.application = pages(page=pdf("The figures", title="Figures"))
    page = download(f"{server.url}/page")
    assert (page.title, page.text) == ("Figures", "The figures")


def test_the_demo_of_a_ministry_is_read_with_its_pdfs(download: Download) -> None:
    with make_demo().serve() as server:
        page = download(f"{server.url}/menu_news/s-news/01demo01_02000005.html")
    assert page.title == "電波の利用に関する省令案についての意見募集"
    assert "農業用の小型無人機" in page.text
    assert "## 別紙1 省令案(PDF)\n\n別紙1 省令案\n" in page.text


def test_attachments_of_the_entry_come_before_links_of_the_page(
    server: StandIn, download: Download
) -> None:
    server.application = pages(
        page=b"<p>Text <a href='linked.pdf'>x</a></p>",
        linked=pdf("linked"),
        named=pdf("named"),
        more=pdf("more"),
        text=Response(body="plain テキスト".encode("cp932"), content_type="text/plain"),
    )
    files = [
        Attachment(url=f"{server.url}/named.pdf?a=1"),
        Attachment(url=f"{server.url}/song.mp3", media_type="audio/mpeg", title="Song"),
        Attachment(url=f"{server.url}/text", title="Notes\nof today"),
        Attachment(url=f"{server.url}/named.pdf?a=1", title="again"),
        Attachment(url=f"{server.url}/more.pdf"),
    ]
    page = download(f"{server.url}/page", attachments=files)
    assert page.text == "Text x\n\n## named.pdf\n\nnamed\n\n## Notes of today\n\nplain テキスト"
    assert page.notes == ["1 more attachments were not read"]
    assert server.count("*linked*") == server.count("*.mp3") == server.count("*more*") == 0


def test_a_picture_of_the_entry_does_not_hide_the_files_of_the_page(
    server: StandIn, download: Download
) -> None:
    server.application = pages(page=b"<p>Text <a href='a.pdf'>x</a></p>", a=pdf("linked"))
    files = [Attachment(url=f"{server.url}/a.png", media_type="image/png")]
    page = download(f"{server.url}/page", attachments=files)
    assert page.text == "Text x\n\n## x\n\nlinked"


@pytest.mark.parametrize("status", [429, 503])
def test_an_attachment_that_may_come_later_fails_the_item(
    server: StandIn, download: Download, status: int
) -> None:
    server.application = pages(
        page=b"<p>Text <a href='a.pdf'>x</a></p>",
        a=Response(status=status, headers={"Retry-After": "90"}),
    )
    with pytest.raises(PageFailed) as caught:
        download(f"{server.url}/page")
    assert caught.value.reason is ItemReason.DOWNLOAD_FAILED
    assert (caught.value.retry_after_seconds, caught.value.is_permanent) == (90.0, False)


def test_a_page_whose_only_text_is_a_file_too_large_is_too_large(
    server: StandIn, download: Download
) -> None:
    server.application = pages(page=b"<p><a href='a.pdf'></a></p>", a=b"%PDF-" + b"x" * 2_000_000)
    with pytest.raises(PageFailed) as caught:
        download(f"{server.url}/page")
    assert caught.value.reason is ItemReason.FILE_TOO_LARGE


def test_long_texts_share_the_room_and_short_ones_stay_whole(
    server: StandIn, download: Download
) -> None:
    body = "\n".join(f"<p>Sentence number {number} of a long page.</p>" for number in range(3_000))
    server.application = pages(
        page=f"<article>{body}<a href='b.pdf'>B</a></article>".encode(), b=pdf("The short one")
    )
    page = download(f"{server.url}/page")
    assert page.text.endswith("## B\n\nThe short one")
    assert PAGE_CHARACTERS_MAX - 200 < len(page.text) <= PAGE_CHARACTERS_MAX
    assert f"the text was cut to {PAGE_CHARACTERS_MAX} characters" in page.notes


def test_the_hash_follows_the_text_and_nothing_else(server: StandIn, download: Download) -> None:
    hashes = []
    for body in (b"<p>One</p>", b"<p>One</p> <!-- 12:00 -->", b"<p>Two</p>"):
        server.application = pages(page=b"<main>" + body + b"</main>")
        hashes.append(download(f"{server.url}/page").content_hash)
    assert hashes[0] == hashes[1] != hashes[2]


def test_secrets_go_to_their_own_origin_only(server: StandIn, download: Download) -> None:
    server.application = pages(page=b"<p>Text <a href='a.pdf'>x</a></p>", a=pdf("a"))
    own, other = f"{server.url}/feed.xml", "http://127.0.0.1:1/feed.xml"
    for origin in (own, other, None):
        download(f"{server.url}/page", sensitive_headers={"X-Key": SECRET}, sensitive_origin=origin)
    told = [seen.request.headers["X-Key"] for seen in server.requests]
    assert told == [SECRET, SECRET, None, None, None, None]


def test_a_page_is_read_without_an_extractor_of_the_caller(
    server: StandIn, downloader: SafeDownloader
) -> None:
    server.application = pages(page=b"<p>Text</p>")
    page = download_page(downloader, url=f"{server.url}/page", attachments_max=0, bytes_max=100_000)
    assert page.text == "Text"
