"""A site to try feeds with: always the same one, every text invented.

`/news.rdf` has the shape of a ministry's press releases in Japanese: RSS 1.0, pages with attached PDFs, one page
that becomes ready later, one not worth a summary, one that changes. `/en/feed.xml` is the same in English as
RSS 2.0; `/en/atom.xml` lists some of its articles again. `/traps/` has the feeds of `traps`.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Final

from tsuzuki.sandbox.stand_in_kind import StandInContext

from .content import Article, Enclosure, Feed, File, Format, Later, MediaContent
from .pdf import pdf
from .site import FeedSite
from .traps import add_traps

JAPANESE_FEED: Final = "/news.rdf"
ENGLISH_FEED: Final = "/en/feed.xml"
ATOM_FEED: Final = "/en/atom.xml"
JAPAN: Final = timezone(timedelta(hours=9))

IMAGE: Final = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108000000003a7e9b55"
    "0000000a49444154789c63680000008200814dd7726800000000" + "49454e44ae426082"
)
"""A grey PNG of one pixel."""


def start(context: StandInContext) -> dict[str, str]:
    """Start it in `tsuzuki sandbox`. The variables are addresses to use, not settings."""
    server = context.serve(make_demo())
    return {
        "SANDBOX_FEED_JAPANESE": server.url + JAPANESE_FEED,
        "SANDBOX_FEED_ENGLISH": server.url + ENGLISH_FEED,
        "SANDBOX_FEED_ATOM": server.url + ATOM_FEED,
    }


def make_demo(*, traps: bool = True) -> FeedSite:
    site = FeedSite()
    site.add_feed(
        Feed(
            path=JAPANESE_FEED,
            title="見本省 報道資料(架空)",
            description="架空の省庁の報道資料です。実在の団体とは関係ありません。",
            format=Format.RSS1,
            language="ja",
        ),
        _press_releases(),
    )
    english = Feed(path=ENGLISH_FEED, title="Example Works News", description="Invented news")
    articles = _news()
    site.add_feed(english, articles)
    site.add_feed(Feed(path=ATOM_FEED, title="Example Works, Atom", format=Format.ATOM))
    for article in articles[:2]:
        site.list_article(ATOM_FEED, article.name)
    site.add_file(File(path="/images/bridge.png", body=IMAGE, content_type="image/png"))
    if traps:
        add_traps(site)
    return site


def _press_releases() -> list[Article]:
    return [
        _release(
            1,
            "地域の通信網整備に関する調査結果の公表",
            "見本省は、令和7年度に実施した地域の通信網整備に関する調査の結果を取りまとめましたので、公表します。\n\n"
            "調査は全国の架空の市町村240団体を対象に行い、光回線を利用できる世帯の割合は97.2%となりました。"
            "前年度から1.4ポイント増えています。\n\n"
            "山間部では整備の費用が課題とされており、見本省は令和8年度に補助の対象を広げる予定です。",
            files=("別紙1 調査結果の概要",),
        ),
        _release(
            2,
            "災害時の携帯電話の相互利用に関する実証実験の実施",
            "見本省は、災害時に他社の通信網を利用できるようにする実証実験を、令和8年6月に見本県で実施します。\n\n"
            "実験には通信事業者4社が参加し、緊急通報と短い文字の送受信を確かめます。"
            "結果は令和8年9月に公表する予定です。",
            files=("別紙1 実施要領", "別紙2 参加事業者の一覧"),
        ),
        _release(
            3,
            "地方公共団体の情報化に関する統計(速報)",
            "このページは準備中です。資料は後日掲載します。",
            later=Later(
                after_requests=2,
                changes={
                    "text": "見本省は、地方公共団体の情報化に関する統計の速報を公表します。\n\n"
                    "手続のオンライン利用率は61.8%で、3年連続で増加しました。"
                    "最も利用が多い手続は図書館の予約でした。",
                    "attachments": (_attachment(3, 1, "統計表"),),
                },
            ),
        ),
        _release(
            4, "人事異動について(令和8年4月1日付)", "令和8年4月1日付の人事異動をお知らせします。"
        ),
        _release(
            5,
            "電波の利用に関する省令案についての意見募集",
            "見本省は、電波の利用に関する省令案を作成しましたので、令和8年5月7日まで意見を募集します。\n\n"
            "省令案は、農業用の小型無人機が使う周波数を新たに定めるものです。",
            later=Later(
                after_requests=2,
                changes={
                    "title": "電波の利用に関する省令案についての意見募集(期間の延長)",
                    "text": "見本省は、電波の利用に関する省令案への意見募集の期間を令和8年5月21日まで延長します。\n\n"
                    "省令案は、農業用の小型無人機が使う周波数を新たに定めるものです。",
                },
            ),
            files=("別紙1 省令案",),
        ),
        _release(
            6,
            "放送の将来に関する有識者会議(第3回)の開催",
            "見本省は、放送の将来に関する有識者会議の第3回を令和8年4月20日に開催します。\n\n"
            "議題は、小規模な放送局の共同利用設備と、災害時の放送の継続についてです。"
            "会議はインターネットで公開します。",
        ),
    ]


def _release(
    number: int,
    title: str,
    text: str,
    *,
    files: tuple[str, ...] = (),
    later: Later | None = None,
) -> Article:
    attachments = [_attachment(number, part, label, text) for part, label in enumerate(files, 1)]
    return Article(
        name=f"release-{number}",
        path=f"/menu_news/s-news/01demo01_0200{number:04d}.html",
        title=title,
        text=text,
        published=datetime(2026, 4, number, 14, 0, tzinfo=JAPAN),
        categories=("報道資料",),
        attachments=tuple(attachments),
        later=later,
    )


def _attachment(number: int, part: int, label: str, text: str = "") -> File:
    body = pdf(f"{label}\n\n{text or label}\n\n以上", title=label)
    return File(path=f"/main_content/{number:06d}{part:03d}.pdf", body=body, label=f"{label}(PDF)")


def _news() -> list[Article]:
    return [
        _bridge(),
        _story(
            7,
            "timetable",
            "Trams run every six minutes from May",
            "From 1 May trams run every six minutes at peak hours. Night trams run on Fridays.",
            later="From 8 May trams run every six minutes at peak hours. The start was moved by a week.",
        ),
        _story(
            8,
            "budget",
            "The budget of the next year",
            "The figures are coming soon.",
            later="The works spend 120 million next year, a tenth more than this year. Most of it goes into tracks.",
        ),
        _story(
            9,
            "office",
            "Personnel changes in April",
            "The personnel office announces three changes of rooms.",
        ),
    ]


def _bridge() -> Article:
    report = pdf("The bridge in figures\n\nLength 412 m, cost 38 million, built in 26 months.")
    path = "/en/bridge.pdf"
    story = _story(
        6,
        "bridge",
        "A new bridge carries trams and bicycles",
        "The Example Works opened the river bridge on Monday. Trams and bicycles cross it; cars do not.\n\n"
        "The bridge is 412 metres long and was finished two months early.",
    )
    return replace(
        story,
        summary="The river bridge is open.",
        content="<p>The Example Works opened the <b>river bridge</b> on Monday.</p>",
        categories=("bridges", "trams"),
        attachments=(File(path=path, body=report, label="The bridge in figures (PDF)"),),
        enclosures=(Enclosure(url=f"{{base}}{path}", length=len(report)),),
        media=(
            MediaContent(
                url="{base}/images/bridge.png",
                title="The bridge",
                description="A white bridge with a tram, seen from the river.",
            ),
        ),
    )


def _story(day: int, name: str, title: str, text: str, *, later: str | None = None) -> Article:
    return Article(
        name=name,
        path=f"/en/{name}",
        title=title,
        text=text,
        published=datetime(2026, 4, day, 8, tzinfo=UTC),
        authors=("Ann Lee",),
        later=Later(after_requests=2, changes={"text": later}) if later else None,
    )
